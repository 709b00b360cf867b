// How much a process needs each role, by its modules and settings.

import type { PlatformConfig } from '../create-platform.ts';
import type { RoleName } from '../engines/engine-table.ts';
import type { Need } from '../engines/resolve-roles.ts';
import type { ModuleBook } from './platform-module.ts';

/** Which roles this process needs; one that it only may use is off without an engine. */
export function needsOf(
  { usesBus = 'optional', taskTypes = [], taskTypesFile, traces = true }: PlatformConfig,
  modules: ModuleBook,
): Readonly<Partial<Record<RoleName, Need>>> {
  const hasOutbox = modules.outbox.length > 0 || Object.keys(modules.destinations).length > 0;
  const hasTasks = modules.tasks.length > 0 || taskTypes.length > 0 || taskTypesFile !== undefined;
  const uses = (role: 'keys' | 'queue'): Need => (modules.uses.has(role) ? 'required' : 'optional');
  return {
    store: 'required',
    subscriptions: 'required',
    snapshots: 'required',
    readModels: 'required',
    sagas: 'required',
    outbox: hasOutbox ? 'required' : 'optional',
    traces: traces ? 'optional' : 'unused',
    tasks: hasTasks ? 'required' : 'optional',
    bus: modules.uses.has('bus') ? 'required' : usesBus,
    keys: uses('keys'),
    queue: uses('queue'),
  };
}
