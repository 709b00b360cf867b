// After a new key was put before the old one: every secret of a tenant is sealed by it. Then the old key can go.

import type { NewCommand } from 'millrace/contracts';
import type { WebContext } from 'millrace/platform';
import { resealApp, resealWorkspace } from './config-events.ts';
import type { AppDocument, WorkspaceDocument } from './config-projections.ts';
import { boundedContext } from './fields.ts';
import type { SecretBox } from './secret-box.ts';

export async function resealSecrets(
  { documents, handle }: Pick<WebContext, 'documents' | 'handle'>,
  secrets: SecretBox,
  tenant: string,
): Promise<number> {
  let count = 0;
  const reseal = (sealed: string, kind: string, code: string): string | undefined => {
    if (secrets.isCurrent(sealed)) return undefined;
    const place = { tenant, kind, code };
    return secrets.seal(secrets.open(sealed, place), place);
  };
  const send = async (id: string, command: NewCommand): Promise<void> => {
    await handle({ tenant, id, command });
    count += 1;
  };
  for await (const each of all<WorkspaceDocument>(documents, 'slack-workspace', tenant)) {
    const token = reseal(each.token, 'workspace', each.code);
    if (token !== undefined) await send(each.code, resealWorkspace({ token }));
  }
  for await (const { code, signingSecret: old } of all<AppDocument>(
    documents,
    'slack-app',
    tenant,
  )) {
    const signingSecret = old === undefined ? undefined : reseal(old, 'app', code);
    if (signingSecret !== undefined) await send(code, resealApp({ signingSecret }));
  }
  return count;
}

async function* all<Document>(
  documents: WebContext['documents'],
  aggregate: string,
  tenant: string,
): AsyncGenerator<Document> {
  let cursor: string | undefined;
  do {
    const page = await documents({ bc: boundedContext, aggregate }).bySet(tenant, 'all', {
      cursor,
    });
    for (const { document } of page.items) yield document as Document;
    cursor = page.cursor;
  } while (cursor !== undefined);
}
