// `millrace console link`: signs in to the web console without typing a token.

import { audited, operatorName } from '../audit.ts';
import { defineCommand } from '../command.ts';
import { consoleLinkUrl } from '../console-link.ts';
import { option } from '../options.ts';
import { openExistingStore, storeOption } from '../stores.ts';

export const consoleLinkCommand = defineCommand({
  name: 'console link',
  summary: 'creates a link that signs in to the console once, within 10 minutes',
  usage: '[options]',
  options: {
    ...storeOption,
    as: option('token', 'name or id of the token whose rights the session has (default: admin)'),
    url: option('url', 'URL of the HTTP API (default: http://127.0.0.1:7480)'),
  },
  examples: [
    'millrace console link',
    'millrace console link --as ops --url https://millrace.example.com',
  ],
  async run(context) {
    const { values, paint } = context;
    const { as: token = 'admin', url = 'http://127.0.0.1:7480' } = values;
    const { openTokens } = await import('../../platform/tokens/open-tokens.ts');
    await using store = await openExistingStore(context, values.store);
    await using tokens = await openTokens(store);
    const by = operatorName(context);
    const action = { store, action: 'console.link', target: token };
    const { code, expiresAt } = await audited(context, action, () =>
      tokens.createLink(token, { by }),
    );
    const link = consoleLinkUrl(url, code);
    return {
      json: { url: link, expiresAt },
      text: `${paint.cyan(link)}\n\nOpen it in a browser before ${expiresAt}; it works once.`,
    };
  },
});
