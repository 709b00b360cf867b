// The address of the console in the banner of the product: a one-time link on terminals, because logs are kept.

import type { Tokens } from '../platform/tokens/open-tokens.ts';
import type { KeptToken } from './admin-token.ts';
import type { CommandContext } from './command.ts';
import type { BannerLine } from './product-banner.ts';

export async function consoleLine(
  { isTTY, paint }: Pick<CommandContext, 'isTTY' | 'paint'>,
  {
    url,
    token,
    tokens,
  }: {
    readonly url: string;
    readonly token: KeptToken | undefined;
    readonly tokens: Pick<Tokens, 'createLink'>;
  },
): Promise<BannerLine> {
  if (!isTTY || token === undefined) {
    return ['console', `${paint.cyan(`${url}/console/`)}  ${paint.dim('(millrace console link)')}`];
  }
  const { code } = await tokens.createLink(token.name, { by: 'millrace start' });
  const text = paint.cyan(consoleLinkUrl(url, code));
  return ['console', `${text}  ${paint.dim('(signs in once, within 10 minutes)')}`];
}

/** The code is in the fragment, which browsers do not send: no log and no referrer contains it. */
export function consoleLinkUrl(url: string, code: string): string {
  return `${url.replace(/\/$/, '')}/console/#link=${code}`;
}
