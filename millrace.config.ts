// What `npm start` runs here: everything embedded, with the payments module to try it out. A webhook goes to
// PAYMENTS_WEBHOOK_URL where that is set.

import { defineConfig } from 'millrace/platform';
import payments from './modules/payments/demo.ts';

export default defineConfig({ modules: [payments] });
