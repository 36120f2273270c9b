"""An orders service as anybody might have it: the standard library, a book in a file, and no idea of retries.

    python3 orders.py [PORT] [BOOK]

POST /orders with {"item": ...} writes a line into the book and answers the order. GET /orders lists them. Sent twice,
the same POST makes two orders: that is what `counterfoil serve` in front of it is for.
"""

import itertools
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

NUMBERS = itertools.count(1)
BOOK = sys.argv[2] if len(sys.argv) > 2 else "orders.jsonl"


class Orders(BaseHTTPRequestHandler):
    def do_POST(self):
        wanted = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if "item" not in wanted:
            return self.answer(400, {"error": "which item?"})
        order = {"id": next(NUMBERS), "item": wanted["item"]}
        self.log_message("writing order %d", order["id"])
        with open(BOOK, "a") as book:
            book.write(json.dumps(order) + "\n")
        return self.answer(201, order)

    def do_GET(self):
        with open(BOOK) as book:
            self.answer(200, [json.loads(line) for line in book])

    def answer(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 9000
    server = ThreadingHTTPServer(("127.0.0.1", port), Orders)
    print("orders on http://127.0.0.1:%d" % server.server_port, flush=True)
    server.serve_forever()
