// Orders in Express behind the middleware of `express-idempotency`, with its defaults and as its own page says: the
// handler leaves off where the middleware has answered.

import { getSharedIdempotencyService, idempotency } from "express-idempotency";
import { place, serve } from "./orders.mjs";

serve((app, path) => {
  app.post(path, idempotency(), async (request, response) => {
    if (getSharedIdempotencyService().isHit(request)) return;
    const { status, body, location } = await place(path, request.body);
    if (location) response.set("Location", location);
    response.status(status).json(body);
  });
});
