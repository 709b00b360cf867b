// Who runs the command, for the record of what changed.

import type { CommandContext } from './command.ts';

export function whoAmI({ env }: Pick<CommandContext, 'env'>): { readonly by?: string } {
  const by = env['MILLRACE_USER'] ?? env['USER'] ?? env['LOGNAME'] ?? '';
  return by === '' ? {} : { by: by.slice(0, 120) };
}
