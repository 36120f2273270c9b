"""Orders in Django, behind `counterfoil serve`: order and receipt commit together, or neither does.

    DATABASE_URL=postgresql://orders@127.0.0.1/shop python app.py [PORT]

Django's nested `atomic()` is a savepoint. Two views show what that means for `hold`: /orders is right, and /trap is how it
goes wrong. The tables and the role are those of the Flask example's schema.sql.
"""

import json
import os
import sys
from urllib.parse import urlsplit
from wsgiref.simple_server import make_server

import django
from django.conf import settings

url = urlsplit(os.environ["DATABASE_URL"])
settings.configure(
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF=__name__,
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": url.path.lstrip("/"),
            "USER": url.username,
            "PASSWORD": url.password or "",
            "HOST": url.hostname,
            "PORT": url.port or 5432,
        }
    },
)
django.setup()

from django.core.wsgi import get_wsgi_application  # noqa: E402
from django.db import IntegrityError, connection, transaction  # noqa: E402
from django.http import HttpResponse  # noqa: E402
from django.urls import path  # noqa: E402


class NotHeld(Exception):
    """Another attempt has this order: whatever is answered, the caller gets what that one came to."""


def hold(permit):
    with connection.cursor() as cursor:
        cursor.execute("SELECT counterfoil.hold(%s)", [permit])
        if not cursor.fetchone()[0]:
            raise NotHeld


def settle(permit, status, headers, body):
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT counterfoil.settle(%s, %s, %s::jsonb, %s)", [permit, status, json.dumps(headers), body.encode()]
        )


def insert_order(wanted):
    with connection.cursor() as cursor:
        insert = "INSERT INTO orders (reference, item) VALUES (%s, %s) RETURNING id"
        cursor.execute(insert, [wanted["reference"], wanted["item"]])
        return cursor.fetchone()[0]


def answered(status, answer, headers):
    response = HttpResponse(json.dumps(answer), status=status)
    for name, value in headers:
        response[name] = value
    return response


def create_order(request):
    permit, wanted = request.headers["Idempotency-Permit"], json.loads(request.body)
    headers = [["Content-Type", "application/json"]]
    try:
        with transaction.atomic():
            # First, directly in the outermost atomic(): from here on it commits with a receipt or not at all.
            hold(permit)
            try:
                # A savepoint around what may fail is right: it undoes the order alone.
                with transaction.atomic():
                    number = insert_order(wanted)
                status, answer = 201, {"id": number, "item": wanted["item"]}
            except IntegrityError:
                status, answer = 409, {"error": "this reference has an order already"}
            # Last, in the same transaction.
            settle(permit, status, headers, json.dumps(answer))
    except NotHeld:
        return HttpResponse("another attempt has this order", status=409)
    return answered(status, answer, headers)


def trap(request):
    """WRONG, and shown for that: the hold is in a savepoint that is rolled back."""
    permit, wanted = request.headers["Idempotency-Permit"], json.loads(request.body)
    with transaction.atomic():
        try:
            with transaction.atomic():
                hold(permit)
                raise ValueError("anything that goes wrong in here")
        except ValueError:
            pass  # swallowed: the savepoint is gone, and the hold with it
        number = insert_order(wanted)
        # The settle is forgotten. With the hold in its place COMMIT would be refused (CF004); now the order is committed.
    return answered(201, {"id": number, "item": wanted["item"]}, [["Content-Type", "application/json"]])


urlpatterns = [path("orders", create_order), path("trap", trap)]

if __name__ == "__main__":
    server = make_server("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 9000, get_wsgi_application())
    print(f"orders on http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
