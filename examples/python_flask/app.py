"""Orders in Python (Flask, psycopg 3), behind `counterfoil serve`: order and receipt commit together, or neither does.

    DATABASE_URL=postgresql://orders@127.0.0.1/shop python app.py [PORT]

The three lines that make it so are marked. After a crash at any point a retry with the same key runs it safely.
"""

import json
import os
import sys

import psycopg
from flask import Flask, Response, request
from psycopg.types.json import Jsonb
from werkzeug.serving import make_server

DATABASE = os.environ["DATABASE_URL"]
app = Flask(__name__)


@app.post("/orders")
def create_order():
    permit = request.headers["Idempotency-Permit"]  # (1) the proxy puts it there, and nobody else can
    wanted = request.get_json()
    # Commits at the end of the block, and rolls back where anything raises.
    with psycopg.connect(DATABASE) as db:
        # (2) First, and outside any savepoint: from here on this transaction commits with a receipt or not at all.
        if not db.execute("SELECT counterfoil.hold(%s)", [permit]).fetchone()[0]:
            db.rollback()
            return "another attempt has this order", 409  # the caller gets what that one came to
        try:
            with db.transaction():
                insert = "INSERT INTO orders (reference, item) VALUES (%s, %s) RETURNING id"
                number = db.execute(insert, [wanted["reference"], wanted["item"]]).fetchone()[0]
            status, answer = 201, {"id": number, "item": wanted["item"]}
        except psycopg.errors.UniqueViolation:
            # A business rule, and for ever: a receipt is kept only for a while.
            status, answer = 409, {"error": "this reference has an order already"}
        body = json.dumps(answer)
        headers = [["Content-Type", "application/json"]]
        # (3) Last: the receipt, in the same transaction.
        db.execute("SELECT counterfoil.settle(%s, %s, %s, %s)", [permit, status, Jsonb(headers), body.encode()])
    return Response(body, status, headers)


if __name__ == "__main__":
    server = make_server("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 9000, app, threaded=True)
    print(f"orders on http://127.0.0.1:{server.port}", flush=True)
    server.serve_forever()
