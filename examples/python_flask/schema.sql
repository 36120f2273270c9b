-- The application's own tables, and what its role may do. Run it after `counterfoil migrate`, as the database's owner.

CREATE TABLE orders (
    id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- The business's own key: one order for each reference, whatever key a request carries, for ever.
    reference text NOT NULL UNIQUE,
    item      text NOT NULL
);

CREATE ROLE orders LOGIN;
GRANT SELECT, INSERT ON orders TO orders;
-- All that it needs of Counterfoil: two functions, and nothing on the tables.
GRANT USAGE ON SCHEMA counterfoil TO orders;
GRANT EXECUTE ON FUNCTION counterfoil.hold(text), counterfoil.settle(text, integer, jsonb, bytea) TO orders;
