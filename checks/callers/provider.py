"""A payment provider that keeps keys, and does one thing wrong on the way."""

import http.server
import json
import threading

MADE = {"object": "payment_intent", "amount": 2000, "currency": "eur", "status": "requires_payment_method"}


def problem(kind, code):
    """An error in the shape that Stripe documents."""
    return json.dumps({"error": {"type": kind, "code": code, "message": code.replace("_", " ")}}).encode()


class Provider:
    """What it did is in `effects` and `asked`; `plan` says what becomes of the n-th request, and `caller` ends its process."""

    def __init__(self, plan):
        self.plan, self.effects, self.asked, self.run = plan, [], 0, 1
        self.kept, self.lock, self.kill = {}, threading.Lock(), lambda: None
        provider = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # Seconds that a connection may rest.
            timeout = 5

            def log_message(self, *_):
                pass

            def do_POST(self):
                # Read whole, so that a caller is never told by a reset that its bytes did not arrive.
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                provider.answer(self, self.headers.get("Idempotency-Key"))

        class Server(http.server.ThreadingHTTPServer):
            # A caller that was killed is expected here.
            def handle_error(self, *_):
                pass

        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.base = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def act(self, key):
        """The effect, once for a key, and always without one."""
        with self.lock:
            if key is not None and key in self.kept:
                return self.kept[key]
            self.effects.append(key)
            made = json.dumps({"id": f"pi_{len(self.effects)}", **MADE}).encode()
            if key is not None:
                self.kept[key] = made
            return made

    def answer(self, to, key):
        with self.lock:
            self.asked += 1
            number = self.asked
        what = self.plan(number, self.run)
        if what == "acts":
            return self.send(to, 200, self.act(key))
        if what == "acts, and the reply is lost":
            self.act(key)
        elif what == "acts, and the reply is cut":
            made = self.act(key)
            self.send(to, 200, made, sent=len(made) // 2)
        elif what == "acts, and the caller dies":
            self.act(key)
            self.kill()
        elif what == "acts, and fails":
            self.act(key)
            return self.send(to, 500, problem("api_error", "failure"))
        elif what == "front fails":
            # Not the provider's own words: a balancer without a server to send to.
            return self.send(to, 503, b"<html>no server is available</html>", {"Retry-After": "1"}, "text/html")
        elif what == "too many":
            return self.send(to, 429, problem("invalid_request_error", "rate_limit"), {"Retry-After": "2"})
        elif what == "in progress":
            return self.send(to, 409, problem("idempotency_error", "idempotency_key_in_use"), {"Retry-After": "1"})
        else:
            raise ValueError(what)
        to.close_connection = True
        return None

    @staticmethod
    def send(to, status, body, headers=None, media="application/json", sent=None):
        to.send_response(status)
        for name, value in {"Content-Type": media, "Content-Length": str(len(body)), **(headers or {})}.items():
            to.send_header(name, value)
        to.end_headers()
        to.wfile.write(body if sent is None else body[:sent])
        to.wfile.flush()
