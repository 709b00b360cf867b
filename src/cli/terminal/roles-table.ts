// Which engine has which role, one row per engine: the banner and `millrace doctor` print the same table.

import type { RoleReport } from '../../platform/engines/role-report.ts';
import type { CommandContext } from '../command.ts';
import { displayUrl } from '../stores.ts';
import { textTable } from './text.ts';

const titles = ['engine', 'URL', 'an acknowledgement survives', 'shared by', 'roles'];

export async function rolesTable(
  context: Pick<CommandContext, 'cwd' | 'paint'>,
  roles: readonly RoleReport[],
): Promise<string> {
  const rows: (readonly string[])[] = [];
  for (const [url = '', own] of Map.groupBy(roles, (each) => each.url)) {
    const { engine = 'off', survives = '', sharedBy = '' } = own[0] ?? {};
    const names = own.map(({ title }) => title).join(', ');
    rows.push([engine, await displayUrl(context, url), survives, sharedBy, names]);
  }
  return textTable(titles, rows, context.paint);
}
