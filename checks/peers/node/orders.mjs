// The service that the packages are put around: orders and refunds in memory, and how it is started.
//
// An order takes ORDER_MS milliseconds, as one in a database would, so that two requests can be under way at once.

import express from "express";

const takes = Number(process.env.ORDER_MS ?? "0");
const made = { "/orders": 0, "/refunds": 0 };

// What an order comes to, after a while: its status and its answer, and for a new one where it is.
export async function place(path, order) {
  if (typeof order?.product !== "string") return { status: 400, body: { error: "no product" } };
  if (!(typeof order.quantity === "number" && order.quantity > 0)) {
    return { status: 400, body: { error: "no quantity" } };
  }
  await new Promise((resolve) => setTimeout(resolve, takes));
  const id = ++made[path];
  const body = { id, product: order.product, quantity: order.quantity };
  return { status: 201, body, location: `${path}/${id}` };
}

// An app whose POSTs are what `guard` makes of them, serving on a free port that it says.
export function serve(guard) {
  const app = express();
  app.use(express.json());
  for (const path of Object.keys(made)) guard(app, path);
  app.get("/orders", (_, response) => response.json({ count: made["/orders"] }));
  const server = app.listen(0, "127.0.0.1", () => console.log(`127.0.0.1:${server.address().port}`));
}
