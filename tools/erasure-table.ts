// How `forget` erases the data of a person from each table, key family, stream and file. It is written into
// docs/erasure.md, and test/security compares it with the real schemas: a new table must be classified here.

export const erasureKinds = {
  encrypted: 'encrypted with the key of the person, which `forget` deletes',
  key: 'the key itself: `forget` deletes it',
  refolded: 'folded again from the events when the person is forgotten',
  replaced: 'replaced when the person is forgotten',
  deleted: 'deleted when the person is forgotten',
  none: 'contains ids, names, numbers and positions only, no payload',
  expires: 'expires by the retention of its owner',
  operator: 'the operator deletes it',
} as const;

export type ErasureKind = keyof typeof erasureKinds;

export interface ErasureRow {
  readonly names: readonly string[];
  readonly how: ErasureKind;
  readonly note?: string;
}

/** Subscriptions, read models, sagas and traces have the same tables in SQLite and PostgreSQL. */
const sqlTables: readonly ErasureRow[] = [
  { names: ['events'], how: 'encrypted' },
  {
    names: ['streams', 'names', 'category_types', 'command_keys'],
    how: 'none',
    note: 'stream names and idempotency keys must not contain personal data',
  },
  {
    names: ['snapshots'],
    how: 'encrypted',
    note: 'the state of an aggregate with events about one person; none is taken of an aggregate with events about several persons, unless it sets `holdsPersonalData: false`',
  },
  {
    names: ['dead_letters', 'subscription_waiting'],
    how: 'none',
    note: 'neither the payload nor the error message of an event about a person is stored',
  },
  {
    names: ['read_documents', 'read_indexes', 'read_sets', 'read_ranges', 'read_lists'],
    how: 'refolded',
  },
  { names: ['read_models', 'read_generations', 'read_versions'], how: 'none' },
  {
    names: [
      'subscriptions',
      'subscription_shards',
      'subscription_marks',
      'subscription_blocked',
      'subscription_workers',
      'processed_events',
    ],
    how: 'none',
  },
  { names: ['saga_index', 'trace_events'], how: 'none' },
];

const busNote =
  'payloads of messages with the header `dataSubject`; other messages are removed by their retention: topics and dead letters after 7 and 30 days';
const jobNote =
  'payload, steps, events, result and errors of jobs with the label `dataSubject`; other jobs are removed by the retention of their type';

export const erasureTables = {
  'SQLite: events.db': [
    ...sqlTables,
    { names: ['event_ids'], how: 'none' },
    { names: ['outbox_messages', 'outbox_ready', 'outbox_sent', 'outbox_dead'], how: 'replaced' },
    { names: ['outbox_attempts'], how: 'deleted' },
    { names: ['outbox_paused', 'outbox_tokens', 'outbox_totals'], how: 'none' },
    {
      names: ['bus_messages'],
      how: 'encrypted',
      note: busNote,
    },
    {
      names: [
        'bus_streams',
        'bus_groups',
        'bus_group_streams',
        'bus_message_ids',
        'bus_pending',
        'bus_tokens',
      ],
      how: 'none',
    },
    { names: ['tasks', 'task_fields'], how: 'encrypted', note: jobNote },
    {
      names: ['task_dedupes', 'task_modes', 'task_rates', 'task_turns', 'task_workers'],
      how: 'none',
    },
  ],
  'SQLite: events.subject-keys.db': [{ names: ['subject_keys'], how: 'key' }],
  'SQLite: events.work.db': [
    { names: ['work_jobs', 'work_keys'], how: 'expires', note: 'references with a time limit' },
    { names: ['millrace_breakers', 'millrace_endpoint_health', 'work_queues'], how: 'none' },
  ],
  'PostgreSQL: schema millrace': [
    ...sqlTables,
    { names: ['subject_keys'], how: 'key' },
    { names: ['migrations'], how: 'none' },
  ],
  'PostgreSQL: schema core_outbox': [
    { names: ['messages', 'ready', 'retry', 'sent', 'dead'], how: 'replaced' },
    { names: ['attempts'], how: 'deleted' },
    { names: ['queued', 'paused_destinations', 'migrations'], how: 'none' },
  ],
  'MongoDB: collections': [
    { names: ['events', 'events_commits', 'events_commit_parts'], how: 'encrypted' },
    {
      names: [
        'events_types',
        'command_keys',
        'subscriptions',
        'subscription_shards',
        'subscription_fences',
        'subscription_marks',
        'subscription_blocked',
        'subscription_workers',
        'processed_events',
        'read_model_versions',
      ],
      how: 'none',
    },
    {
      names: ['dead_letter_queue', 'subscription_waiting'],
      how: 'none',
      note: 'neither the payload nor the error message of an event about a person is stored',
    },
    { names: ['<aggregate>_snapshots'], how: 'encrypted' },
    { names: ['events_subject_keys'], how: 'key' },
  ],
  'KurrentDB: streams': [
    { names: ['streams of events'], how: 'encrypted' },
    {
      names: ['millrace.subjectKeys-<subject>'],
      how: 'key',
      note: 'the bytes stay on disk until the server scavenges',
    },
  ],
  'Redis: key families of `redisKeys`': [
    {
      names: [
        'snapshot',
        'hash',
        'indexByCode',
        'index',
        'setAll',
        'setEnabled',
        'set',
        'zsetByUpdated',
        'zset',
        'list',
        'listOf',
        'meta',
      ],
      how: 'refolded',
    },
    {
      names: ['queue', 'queueAddress', 'jobId'],
      how: 'none',
      note: 'BullMQ jobs refer to messages',
    },
    {
      names: [
        'checkpoint',
        'checkpointChanges',
        'lease',
        'readModelMark',
        'readModelVersions',
        'readModels',
        'subscriptions',
        'workflowCheckpoint',
        'workflowByStatus',
        'workflowDue',
        'workflowPart',
        'workflows',
      ],
      how: 'none',
    },
    {
      names: ['subscription'],
      how: 'none',
      note: 'neither the payload nor the error message of an event about a person is stored',
    },
    {
      names: ['aggregateSnapshot', 'commandKey'],
      how: 'none',
      note: 'as the tables `snapshots` and `command_keys`',
    },
  ],
  'Redis: other keys': [
    { names: ['<root>:… (bus streams)', 'millrace.bus:…'], how: 'encrypted', note: busNote },
    { names: ['jobs of tasks'], how: 'encrypted', note: jobNote },
    { names: ['millrace:breakers'], how: 'none' },
  ],
  'NATS: streams and buckets': [
    { names: ['millrace-bus', 'millrace-bus-system'], how: 'encrypted', note: busNote },
    { names: ['KV_millrace-tasks'], how: 'encrypted', note: jobNote },
    { names: ['KV_millrace-leases'], how: 'none' },
  ],
  'Files in .millrace': [
    {
      names: ['events.db', 'events.subject-keys.db', 'events.work.db', 'local.db', 'local.work.db'],
      how: 'none',
      note: 'the tables above, with their `-wal` and `-shm` files',
    },
    { names: ['admin.token', 'setup.lock', 'tls/…'], how: 'none' },
    {
      names: ['attachments/…'],
      how: 'encrypted',
      note: 'files that a user or a token uploaded to a topic (`notify:user:<name>`); files of visitors without credentials belong to no person. All files are deleted 3 hours after the upload, unless `notify.limits.attachmentExpiryMs` says otherwise',
    },
    {
      names: ['archive/…'],
      how: 'encrypted',
      note: busNote,
    },
    { names: ['exports, backups'], how: 'operator', note: 'files that an operator wrote' },
  ],
} satisfies Readonly<Record<string, readonly ErasureRow[]>>;

/** The page with its table replaced. */
export function withErasureTable(page: string): string {
  const tables = Object.entries<readonly ErasureRow[]>(erasureTables).map(([title, rows]) => {
    const lines = rows.map(({ names, how, note }) => {
      const listed = names.map((name) => `\`${name}\``).join(', ');
      return `| ${listed} | ${erasureKinds[how]}${note === undefined ? '' : `; ${note}`} |\n`;
    });
    return `### ${title}\n\n| name | erased how |\n|---|---|\n${lines.join('')}`;
  });
  const [head = ''] = page.split(marker);
  return `${head}${marker}\n\n${tables.join('\n')}`;
}

const marker = '<!-- generated by npm run generate -->';
