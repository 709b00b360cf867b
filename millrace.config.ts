// What `npm start` runs here: everything embedded, with three modules to try it out. Webhooks of payments go to
// PAYMENTS_WEBHOOK_URL, mails of collab by COLLAB_SMTP_URL, and Slack requests need SLACK_SECRET_KEYS, where they are
// set; `millrace dev` also makes some payments, and a workspace with people in it.

import { defineConfig, defineModule } from 'millrace/platform';
import { task } from 'millrace/tasks';
import collab, { sample as sampleWorkspace } from './modules/collab/demo.ts';
import payments, { sample as samplePayments } from './modules/payments/demo.ts';
import slackRequests from './modules/slack-requests/demo.ts';

// Something to enqueue at once: millrace tasks enqueue greet '{"name":"Ada"}'.
const greet = task('greet', async (ctx) => {
  const { name = 'stranger' } = ctx.payload as { readonly name?: string };
  const text = await ctx.step('write', () => `Hello, ${name}`);
  await ctx.progress(50, 'written');
  return ctx.step('read-aloud', () => ({ text, letters: text.length }));
});

export default defineConfig({
  modules: [payments, collab, slackRequests, defineModule({ name: 'samples', tasks: [greet] })],
  async samples(platform) {
    await samplePayments((request) => platform.handle(request));
    const tokens = await sampleWorkspace(platform);
    return [...tokens].map(([name, token]) => [`token of ${name}`, token] as const);
  },
});
