// What `npm start` runs here: everything embedded, with three modules to try it out. Webhooks of payments go to
// PAYMENTS_WEBHOOK_URL, mails of collab by COLLAB_SMTP_URL, and Slack requests need SLACK_SECRET_KEYS, where they are
// set; `millrace dev` also makes some payments, and a workspace with people in it.

import { defineConfig } from 'millrace/platform';
import collab, { sample as sampleWorkspace } from './modules/collab/demo.ts';
import payments, { sample as samplePayments } from './modules/payments/demo.ts';
import slackRequests from './modules/slack-requests/demo.ts';

export default defineConfig({
  modules: [payments, collab, slackRequests],
  async samples(platform) {
    await samplePayments((request) => platform.handle(request));
    const tokens = await sampleWorkspace(platform);
    return [...tokens].map(([name, token]) => [`token of ${name}`, token] as const);
  },
});
