// All commands, in the order of the help.

import type { Command } from '../command.ts';
import { archiveCommands } from './archive.ts';
import { consoleLinkCommand } from './console.ts';
import { deadLetterCommands } from './dead-letters.ts';
import { completionCommand, lintCommand, newCommand, tourCommand } from './developer.ts';
import { doctorCommand } from './doctor.ts';
import { outboxCommands } from './outbox.ts';
import { projectionCommands } from './projections.ts';
import { sagaCommands } from './sagas.ts';
import { devCommand, startCommand } from './start.ts';
import { schemasCommand } from './schemas.ts';
import { streamCommands } from './streams.ts';
import { subscriptionCommands } from './subscriptions.ts';
import { taskAdminCommands } from './task-admin.ts';
import { taskCommands } from './tasks.ts';
import { tokenCommands } from './tokens.ts';
import { traceCommand } from './trace.ts';
import {
  exportCommand,
  forgetCommand,
  importCommand,
  migrateCommand,
  scavengeCommand,
} from './transfer.ts';

export const commands: readonly Command[] = [
  startCommand,
  devCommand,
  tourCommand,
  newCommand,
  lintCommand,
  schemasCommand,
  migrateCommand,
  doctorCommand,
  ...streamCommands,
  traceCommand,
  ...subscriptionCommands,
  ...deadLetterCommands,
  ...projectionCommands,
  ...sagaCommands,
  ...tokenCommands,
  consoleLinkCommand,
  ...outboxCommands,
  ...taskCommands,
  ...taskAdminCommands,
  ...archiveCommands,
  scavengeCommand,
  forgetCommand,
  exportCommand,
  importCommand,
  completionCommand(() => commands),
];
