"""An application that couples by permit and goes wrong as the path says: POST /<case>/<hold or bare>.

What it commits is one row of `effects` for each run. Where a case waits, it says so on a line of its own, and goes on
when POST /open/<gate> comes; it says when a run has ended, too.
"""

import os
import sys
import threading

import psycopg
from flask import Flask, request
from psycopg.types.json import Jsonb
from werkzeug.serving import make_server

DATABASE = os.environ["DATABASE_URL"]
GATES = {}
RUNS = {}
LOCK = threading.Lock()
app = Flask(__name__)


def tell(line):
    # In one piece: other threads write, too.
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def gate(name):
    with LOCK:
        return GATES.setdefault(name, threading.Event())


def wait_at(name):
    tell("waits " + name)
    gate(name).wait(60)


@app.post("/open/<name>")
def open_gate(name):
    gate(name).set()
    return "", 204


class NotHeld(Exception):
    pass


def hold(db, permit, how):
    if how == "hold" and not db.execute("SELECT counterfoil.hold(%s)", [permit]).fetchone()[0]:
        raise NotHeld


def effect(db, key):
    db.execute("INSERT INTO effects (key) VALUES (%s)", [key])


def settle(db, permit, status=201):
    headers = Jsonb([["Content-Type", "text/plain"], ["Location", "/orders/7"]])
    db.execute("SELECT counterfoil.settle(%s, %s, %s, %s)", [permit, status, headers, b"settled"])


def whole(permit, key, how):
    with psycopg.connect(DATABASE) as db:
        hold(db, permit, how)
        effect(db, key)
        settle(db, permit)


def late(permit, key, how, held):
    with psycopg.connect(DATABASE) as db:
        hold(db, permit, how)
        effect(db, key)
        held.set()
        wait_at(key)
        settle(db, permit)
    tell("committed " + key)


@app.post("/<case>/<how>")
def run(case, how):
    permit, key = request.headers["Idempotency-Permit"], request.get_json()["key"]
    with LOCK:
        RUNS[key] = run_number = RUNS.get(key, 0) + 1
    try:
        return play(case, how, permit, key, run_number == 1)
    except NotHeld:
        return "not held", 500
    except psycopg.Error as error:
        return "refused as " + (error.sqlstate or "nothing"), 500
    finally:
        tell(f"ended {key} {run_number}")


def play(case, how, permit, key, first):
    if case == "whole" or (case.endswith("-once") and not first):
        whole(permit, key, how)
    elif case in ("forgotten", "forgotten-500", "forgotten-waits-once"):
        with psycopg.connect(DATABASE) as db:
            hold(db, permit, how)
            effect(db, key)
            if case == "forgotten-waits-once":
                wait_at(key)
        tell("committed " + key)
        if case == "forgotten-500":
            return "failed", 500
    elif case == "reply-lost":
        whole(permit, key, how)
        return "the commit's reply was lost", 500
    elif case == "own-retry":
        whole(permit, key, how)
        whole(permit, key, how)
    elif case == "commit-after-answer":
        held = threading.Event()
        threading.Thread(target=late, args=[permit, key, how, held]).start()
        held.wait()
    elif case == "swallowed":
        with psycopg.connect(DATABASE) as db:
            hold(db, permit, how)
            effect(db, key)
            try:
                with db.transaction():
                    settle(db, permit, status=99)
            except psycopg.Error:
                pass
    elif case == "twice":
        with psycopg.connect(DATABASE) as db:
            hold(db, permit, how)
            effect(db, key)
            settle(db, permit)
            settle(db, permit)
    elif case == "other-permit":
        whole(request.get_json()["permit"].replace("MINE", permit), key, how)
    elif case == "nothing-once":
        return "all is well", 201
    elif case == "open-once":
        with psycopg.connect(DATABASE) as db:
            hold(db, permit, how)
            effect(db, key)
            wait_at(key)
            settle(db, permit)
    elif case == "begins-late-once":
        wait_at(key)
        whole(permit, key, how)
    return "the application's own words", 201


if __name__ == "__main__":
    server = make_server("127.0.0.1", 0, app, threaded=True)
    tell(f"http://127.0.0.1:{server.port}")
    server.serve_forever()
