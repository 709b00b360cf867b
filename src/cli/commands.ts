// The table of commands, in the order in which the help shows them.

import type { Command } from './command.ts';
import { archiveListCommand } from './archive-list-command.ts';
import { archiveReadCommand } from './archive-read-command.ts';
import { archiveRestoreCommand } from './archive-restore-command.ts';
import { completionCommand } from './completion-command.ts';
import { devCommand } from './dev-command.ts';
import { dlqDiscardCommand } from './dlq-discard-command.ts';
import { dlqListCommand } from './dlq-list-command.ts';
import { dlqNoteCommand } from './dlq-note-command.ts';
import { dlqReplayCommand } from './dlq-replay-command.ts';
import { dlqShowCommand } from './dlq-show-command.ts';
import { doctorCommand } from './doctor-command.ts';
import { exportCommand } from './export-command.ts';
import { forgetCommand } from './forget-command.ts';
import { importCommand } from './import-command.ts';
import { lintCommand } from './lint-command.ts';
import { migrateCommand } from './migrate-command.ts';
import { newCommand } from './new-command.ts';
import { projectionsRebuildCommand } from './projections-rebuild-command.ts';
import { projectionsRetireCommand } from './projections-retire-command.ts';
import { projectionsStatusCommand } from './projections-status-command.ts';
import { projectionsSwitchCommand } from './projections-switch-command.ts';
import { sagasListCommand } from './sagas-list-command.ts';
import { sagasResumeCommand } from './sagas-resume-command.ts';
import { sagasShowCommand } from './sagas-show-command.ts';
import { outboxArchiveCommand } from './outbox-archive-command.ts';
import { outboxListCommand } from './outbox-list-command.ts';
import { outboxPauseCommand, outboxResumeCommand } from './outbox-pause-command.ts';
import { outboxPurgeCommand } from './outbox-purge-command.ts';
import { outboxRunCommand } from './outbox-run-command.ts';
import { outboxReplayCommand } from './outbox-replay-command.ts';
import { outboxShowCommand } from './outbox-show-command.ts';
import { scavengeCommand } from './scavenge-command.ts';
import { startCommand } from './start-command.ts';
import { streamAppendCommand } from './stream-append-command.ts';
import { streamDeleteCommand } from './stream-delete-command.ts';
import { streamInfoCommand } from './stream-info-command.ts';
import { streamMetadataCommand } from './stream-metadata-command.ts';
import { streamReadCommand } from './stream-read-command.ts';
import { streamTailCommand } from './stream-tail-command.ts';
import { streamTombstoneCommand } from './stream-tombstone-command.ts';
import { subscriptionsLagCommand } from './subscriptions-lag-command.ts';
import { subscriptionsListCommand } from './subscriptions-list-command.ts';
import {
  subscriptionsPauseCommand,
  subscriptionsResumeCommand,
} from './subscriptions-pause-command.ts';
import { subscriptionsResetCommand } from './subscriptions-reset-command.ts';
import { tasksCancelCommand, tasksRetryCommand } from './tasks-deed-commands.ts';
import { tasksEnqueueCommand } from './tasks-enqueue-command.ts';
import { tasksListCommand } from './tasks-list-command.ts';
import { tasksTailCommand, tasksTypesCommand, tasksWorkersCommand } from './tasks-look-commands.ts';
import { tasksDrainCommand, tasksPauseCommand, tasksResumeCommand } from './tasks-mode-commands.ts';
import { tasksGroupsCommand, tasksMonitorCommand } from './tasks-monitor-commands.ts';
import { tasksShowCommand } from './tasks-show-command.ts';
import { tokenCreateCommand } from './token-create-command.ts';
import { tokenListCommand } from './token-list-command.ts';
import { tokenRevokeCommand } from './token-revoke-command.ts';
import { tourCommand } from './tour-command.ts';
import { traceCommand } from './trace-command.ts';

export const commands: readonly Command[] = [
  startCommand,
  devCommand,
  tourCommand,
  newCommand,
  lintCommand,
  migrateCommand,
  doctorCommand,
  streamReadCommand,
  streamAppendCommand,
  streamTailCommand,
  streamInfoCommand,
  streamMetadataCommand,
  streamDeleteCommand,
  streamTombstoneCommand,
  traceCommand,
  subscriptionsListCommand,
  subscriptionsLagCommand,
  subscriptionsPauseCommand,
  subscriptionsResumeCommand,
  subscriptionsResetCommand,
  dlqListCommand,
  dlqShowCommand,
  dlqReplayCommand,
  dlqDiscardCommand,
  dlqNoteCommand,
  projectionsStatusCommand,
  projectionsRebuildCommand,
  projectionsSwitchCommand,
  projectionsRetireCommand,
  sagasListCommand,
  sagasShowCommand,
  sagasResumeCommand,
  tokenCreateCommand,
  tokenListCommand,
  tokenRevokeCommand,
  outboxRunCommand,
  outboxListCommand,
  outboxShowCommand,
  outboxReplayCommand,
  outboxPurgeCommand,
  outboxArchiveCommand,
  outboxPauseCommand,
  outboxResumeCommand,
  tasksEnqueueCommand,
  tasksListCommand,
  tasksShowCommand,
  tasksCancelCommand,
  tasksRetryCommand,
  tasksPauseCommand,
  tasksResumeCommand,
  tasksDrainCommand,
  tasksTailCommand,
  tasksMonitorCommand,
  tasksGroupsCommand,
  tasksTypesCommand,
  tasksWorkersCommand,
  archiveListCommand,
  archiveReadCommand,
  archiveRestoreCommand,
  scavengeCommand,
  forgetCommand,
  exportCommand,
  importCommand,
  completionCommand(() => commands),
];
