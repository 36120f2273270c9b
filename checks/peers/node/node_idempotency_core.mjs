// Orders in Express around `@node-idempotency/core`, with its storage in memory and its defaults. The package names errors
// and knows no HTTP: statuses, headers and what is kept are chosen here as its own plugin for NestJS chooses them.

import { Idempotency, IdempotencyError, IdempotencyErrorCodes } from "@node-idempotency/core";
import { MemoryStorageAdapter } from "@node-idempotency/storage-adapter-memory";
import { place, serve } from "./orders.mjs";

const keys = new Idempotency(new MemoryStorageAdapter(), {});
const statuses = {
  [IdempotencyErrorCodes.REQUEST_IN_PROGRESS]: 409,
  [IdempotencyErrorCodes.IDEMPOTENCY_FINGERPRINT_MISSMATCH]: 422,
};

serve((app, path) => {
  app.post(path, async (request, response, next) => {
    const asked = {
      headers: request.headers,
      body: request.body,
      path: request.originalUrl,
      method: request.method,
    };
    try {
      const kept = await keys.onRequest(asked);
      if (kept) {
        response.set("Idempotent-Replayed", "true");
        response.status(kept.additional.status).json(kept.body);
        return;
      }
      const { status, body, location } = await place(path, request.body);
      await keys.onResponse(asked, { body, additional: { status } });
      if (location) response.set("Location", location);
      response.status(status).json(body);
    } catch (error) {
      if (!(error instanceof IdempotencyError)) return void next(error);
      if (error.code === IdempotencyErrorCodes.REQUEST_IN_PROGRESS) response.set("Retry-After", "1");
      response.status(statuses[error.code] ?? 400).json({ message: error.message });
    }
  });
});
