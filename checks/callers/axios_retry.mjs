// One payment with axios-retry as it comes, under a key that this process draws.
import {randomUUID} from 'node:crypto';
import axios from 'axios';
import axiosRetry from 'axios-retry';

const client = axios.create({timeout: 5000});
axiosRetry(client);
try {
  const answer = await client.post(`${process.argv[2]}/v1/payment_intents`, {amount: 2000, currency: 'eur'}, {
    headers: {'Idempotency-Key': randomUUID()},
  });
  console.log(answer.data.id);
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
