"""Orders in FastAPI behind the middleware of `fastapi-idempotency`, with its own store in memory.

With the argument `keys-only` requests without a key are not compared with one another: by default two equal ones within
ten seconds are taken for one.
"""

import sys
from datetime import timedelta

import orders
from fastapi import FastAPI
from fastapi_idempotency import IdempotencyMiddleware

app = FastAPI(routes=orders.routes)
if sys.argv[1:] == ["keys-only"]:
    app.add_middleware(IdempotencyMiddleware, automatic_window=timedelta(0))
else:
    app.add_middleware(IdempotencyMiddleware)
orders.serve(app)
