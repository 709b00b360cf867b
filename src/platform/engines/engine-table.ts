// One table of engines and roles: which roles an engine has, and what an acknowledgement survives.

import type { EngineName } from '../../contracts/engine-url.ts';
import type { RoleMap } from './engine-roles.ts';

export type RoleName = keyof RoleMap;

/** The settings that name an engine, in the order in which they are read. */
export const urlFields = ['store', 'outbox', 'keys', 'bus', 'tasks', 'queue'] as const;
export type UrlField = (typeof urlFields)[number];

interface RoleRow {
  /** As it is shown: `<engine> has no <title>`. */
  readonly title: string;
  /** The settings that name the engine of this role, most specific first. */
  readonly fields: readonly UrlField[];
  /** Settings that also name engines without this role. */
  readonly isOptionalIn?: readonly UrlField[] | undefined;
}

export const roleTable: Readonly<Record<RoleName, RoleRow>> = {
  store: { title: 'event store', fields: ['store'] },
  subscriptions: { title: 'checkpoints', fields: [] },
  snapshots: { title: 'snapshots', fields: [] },
  traces: { title: 'trace index', fields: [] },
  outbox: { title: 'outbox', fields: ['outbox'] },
  readModels: { title: 'read models', fields: ['keys'], isOptionalIn: ['keys'] },
  sagas: { title: 'saga index', fields: ['keys'], isOptionalIn: ['keys'] },
  leases: { title: 'leases', fields: ['keys'], isOptionalIn: ['keys'] },
  keys: { title: 'key store', fields: ['keys', 'queue'], isOptionalIn: ['keys', 'queue'] },
  bus: { title: 'bus', fields: ['bus'] },
  tasks: { title: 'tasks', fields: ['tasks', 'bus'], isOptionalIn: ['bus'] },
  queue: { title: 'work queues', fields: ['queue'] },
};

interface EngineRow {
  readonly title: string;
  readonly roles: readonly RoleName[];
  /** Runs inside the process, without a server. */
  readonly isEmbedded: boolean;
  /** What an acknowledged write survives. */
  readonly survives: string;
  /** Which processes see the same data. */
  readonly sharedBy: 'all processes' | 'processes of this machine' | 'this process';
}

/** The roles of a database next to its events. */
const inStore = ['subscriptions', 'snapshots', 'traces', 'outbox', 'readModels', 'sagas'] as const;

/** The roles of an embedded engine next to those. */
const inFile = ['bus', 'tasks', 'keys', 'queue'] as const;

export const engineTable: Readonly<Record<EngineName, EngineRow>> = {
  memory: {
    title: 'memory',
    roles: ['store', ...inStore, ...inFile],
    isEmbedded: true,
    survives: 'nothing: all data is lost when the process exits',
    sharedBy: 'this process',
  },
  sqlite: {
    title: 'SQLite',
    roles: ['store', ...inStore, ...inFile],
    isEmbedded: true,
    survives: 'a crash of the process or the machine',
    sharedBy: 'processes of this machine',
  },
  postgres: {
    title: 'PostgreSQL',
    roles: ['store', ...inStore],
    isEmbedded: false,
    survives: 'a crash of the server',
    sharedBy: 'all processes',
  },
  mongodb: {
    title: 'MongoDB',
    roles: ['store', 'subscriptions', 'snapshots'],
    isEmbedded: false,
    survives: 'the loss of a minority of replicas',
    sharedBy: 'all processes',
  },
  kurrentdb: {
    title: 'KurrentDB',
    roles: ['store'],
    isEmbedded: false,
    survives: 'the loss of a minority of replicas',
    sharedBy: 'all processes',
  },
  redis: {
    title: 'Redis',
    roles: [
      'subscriptions',
      'snapshots',
      'readModels',
      'sagas',
      'leases',
      'bus',
      'tasks',
      'keys',
      'queue',
    ],
    isEmbedded: false,
    survives: 'what appendonly and appendfsync of the server say',
    sharedBy: 'all processes',
  },
  nats: {
    title: 'NATS',
    roles: ['leases', 'bus', 'tasks'],
    isEmbedded: false,
    survives: 'a crash of the server process; of the machine, after its sync interval',
    sharedBy: 'all processes',
  },
};
