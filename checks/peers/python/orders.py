"""The service that the packages are put around: orders and refunds in memory, and how it is started.

An order takes ORDER_MS milliseconds, as one in a database would, so that two requests can be under way at once.
"""

import asyncio
import os
import socket

import uvicorn
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

TAKES_SECONDS = int(os.environ.get("ORDER_MS", "0")) / 1000
made = {"/orders": 0, "/refunds": 0}


def fault(order: object) -> str | None:
    """What is wrong with a body."""
    if not isinstance(order, dict):
        return "no object"
    if not isinstance(order.get("product"), str):
        return "no product"
    quantity = order.get("quantity")
    if isinstance(quantity, bool) or not isinstance(quantity, (int, float)) or quantity <= 0:
        return "no quantity"
    return None


async def place(request: Request) -> Response:
    try:
        order = await request.json()
    except ValueError:
        return JSONResponse({"error": "no JSON"}, 400)
    wrong = fault(order)
    if wrong:
        return JSONResponse({"error": wrong}, 400)
    done = asyncio.Event()
    asyncio.get_running_loop().call_later(TAKES_SECONDS, done.set)
    await done.wait()
    path = request.url.path
    made[path] += 1
    placed = {"id": made[path], "product": order["product"], "quantity": order["quantity"]}
    return JSONResponse(placed, 201, {"Location": f"{path}/{made[path]}"})


async def count(_: Request) -> Response:
    return JSONResponse({"count": made["/orders"]})


routes = [
    Route("/orders", place, methods=["POST"]),
    Route("/refunds", place, methods=["POST"]),
    Route("/orders", count, methods=["GET"]),
]


def serve(app) -> None:
    """Serves on a free port, and says which."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(128)
    print("{}:{}".format(*listener.getsockname()), flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False)).run(sockets=[listener])
