// Orders in Node (Express, pg), behind `counterfoil serve`: order and receipt commit together, or neither does.
//
//     DATABASE_URL=postgresql://orders@127.0.0.1/shop node app.mjs [PORT]
//
// The three lines that make it so are marked. Tables and role: ../python_flask/schema.sql.

import express from "express";
import pg from "pg";

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL });
// A connection that breaks while nobody uses it is made anew.
pool.on("error", (error) => console.error(error.message));
const app = express();
app.use(express.json());

// Commits what `work` does, and rolls back where it throws or answers nothing.
async function transaction(work) {
  const db = await pool.connect();
  let broken;
  try {
    await db.query("BEGIN");
    const done = await work(db);
    await db.query(done ? "COMMIT" : "ROLLBACK");
    return done;
  } catch (error) {
    await db.query("ROLLBACK").catch((lost) => (broken = lost));
    throw error;
  } finally {
    db.release(broken);
  }
}

app.post("/orders", async (request, response) => {
  const permit = request.get("Idempotency-Permit"); // (1) the proxy puts it there, and nobody else can
  const { reference, item } = request.body;
  const headers = [["Content-Type", "application/json"]];
  const done = await transaction(async (db) => {
    // (2) First, and outside any savepoint: from here on this transaction commits with a receipt or not at all.
    const { rows } = await db.query("SELECT counterfoil.hold($1) AS held", [permit]);
    if (!rows[0].held) return null;
    // A business rule, and for ever: a receipt is kept only for a while.
    const insert = "INSERT INTO orders (reference, item) VALUES ($1, $2) ON CONFLICT (reference) DO NOTHING RETURNING id";
    const made = (await db.query(insert, [reference, item])).rows[0];
    const status = made ? 201 : 409;
    const body = JSON.stringify(made ? { id: Number(made.id), item } : { error: "this reference has an order already" });
    // (3) Last: the receipt, in the same transaction.
    const settle = "SELECT counterfoil.settle($1, $2, $3, $4)";
    await db.query(settle, [permit, status, JSON.stringify(headers), Buffer.from(body)]);
    return { status, body };
  });
  // Not held: another attempt has this order, and the caller gets what that one came to.
  if (!done) return response.status(409).send("another attempt has this order");
  response.status(done.status).set(Object.fromEntries(headers)).send(done.body);
});

const server = app.listen(Number(process.argv[2] ?? 9000), "127.0.0.1", () => {
  console.log(`orders on http://127.0.0.1:${server.address().port}`);
});
