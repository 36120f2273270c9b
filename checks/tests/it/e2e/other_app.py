"""An application that knows nothing of receipts: POST /orders makes one row of `effects` and says its number.

    DATABASE_URL=postgresql://orders@127.0.0.1/shop python other_app.py PORT

Nothing here keeps an order from being made twice.
"""

import os
import sys

import psycopg
from flask import Flask, request
from werkzeug.serving import make_server

DATABASE = os.environ["DATABASE_URL"]
app = Flask(__name__)


@app.post("/orders")
def create_order():
    insert = "INSERT INTO effects (reference) VALUES (%s) RETURNING id"
    try:
        with psycopg.connect(DATABASE) as db:
            number = db.execute(insert, [request.get_json()["reference"]]).fetchone()[0]
    except psycopg.Error:
        return "failed", 500  # perhaps after it was committed
    return f"order {number}", 201


if __name__ == "__main__":
    server = make_server("127.0.0.1", int(sys.argv[1]), app, threaded=True)
    print(f"orders on http://127.0.0.1:{server.port}", flush=True)
    server.serve_forever()
