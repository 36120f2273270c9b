"""Orders behind the middleware of `asgi-idempotency-header`, with its own backend in memory and its defaults."""

import orders
from idempotency_header_middleware import IdempotencyHeaderMiddleware
from idempotency_header_middleware.backends import MemoryBackend
from starlette.applications import Starlette
from starlette.middleware import Middleware

layer = Middleware(IdempotencyHeaderMiddleware, backend=MemoryBackend())
orders.serve(Starlette(routes=orders.routes, middleware=[layer]))
