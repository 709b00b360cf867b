// What `npm start` runs here: everything embedded, with the payments module to try it out. A webhook goes to
// PAYMENTS_WEBHOOK_URL where that is set; `millrace dev` also makes some payments.

import { defineConfig } from 'millrace/platform';
import payments, { sample } from './modules/payments/demo.ts';

export default defineConfig({
  modules: [payments],
  samples: async (platform) => void (await sample((request) => platform.handle(request))),
});
