// The table of commands, in the order in which the help shows them.

import type { Command } from './command.ts';
import { completionCommand } from './completion-command.ts';
import { lintCommand } from './lint-command.ts';
import { newCommand } from './new-command.ts';
import { tourCommand } from './tour-command.ts';

export const commands: readonly Command[] = [
  tourCommand,
  newCommand,
  lintCommand,
  completionCommand(() => commands),
];
