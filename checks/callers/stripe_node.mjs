// One payment with Stripe's Node SDK as it comes: it draws the key, and retries.
import Stripe from 'stripe';

const base = new URL(process.argv[2]);
const stripe = new Stripe('sk_test_1', {host: base.hostname, port: base.port, protocol: 'http', telemetry: false});
try {
  const made = await stripe.paymentIntents.create({amount: 2000, currency: 'eur'});
  console.log(made.id);
} catch (error) {
  console.error(`${error.type}: ${error.message}`);
  process.exitCode = 1;
}
