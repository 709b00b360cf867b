// Claims inside the writer thread: the rules of select-claims.ts over the index of ready jobs.

import {
  claimInParts,
  selectClaims,
  type ClaimMemory,
} from '../../../tasks/rules/select-claims.ts';
import type { ClaimRequest, ClaimRule } from '../../../tasks/task-engine.ts';
import type { StoredTask, TaskHead } from '../../../tasks/task-job.ts';
import type { SqlQuery, SqlRow } from '../thread/protocol.ts';
import { taskLane, toHead, toStoredTask } from './tables.ts';

export interface Claimed {
  readonly claimed: readonly StoredTask[];
  /** When a rate limit admits the next job; null: no rate limit holds a job back. */
  readonly freeAtMs: number | null;
}

export interface TaskClaims {
  claim(request: ClaimRequest): Claimed;
  /** Makes the next jobs of a key claimable after one of its jobs stopped running. */
  freeKey(type: string, concurrencyKey: string): void;
}

/** The most tenants per claim and priority; other tenants wait for a later claim. */
const tenantsMax = 500;

export function createClaims({ all, one, number }: SqlQuery): TaskClaims {
  let lastTurn: number | undefined;

  const runningOf = (type: string, key: string): number =>
    number(
      `select count(*) from tasks where state = 'running' and type = ? and concurrency_key = ?`,
      type,
      key,
    );
  const memory: ClaimMemory = {
    turnOf: ({ type, priority, tenant }) =>
      number(
        'select turn from task_turns where type = ? and priority = ? and tenant = ?',
        type,
        priority,
        tenant,
      ),
    rateFullAtMs: (type, tenant = '') =>
      number('select full_at_ms from task_rates where type = ? and tenant = ?', type, tenant),
    runningOf,
  };

  /** Tenants with a ready job of this priority, found without a scan of all jobs. */
  function tenantsOf(type: string, priority: number): readonly string[] {
    const tenants: string[] = [];
    const sql = `select min(tenant) as tenant from tasks
       where lane = ${taskLane.ready} and type = ? and priority = ? and tenant `;
    let next = one(`${sql} >= ''`, type, priority)?.['tenant'] ?? null;
    while (next !== null && tenants.length < tenantsMax) {
      tenants.push(String(next));
      next = one(`${sql} > ?`, type, priority, next)?.['tenant'] ?? null;
    }
    return tenants;
  }

  function ready(type: string, priority: number, limit: number): readonly TaskHead[] {
    return tenantsOf(type, priority).flatMap((tenant) =>
      all(
        `select * from tasks
         where lane = ${taskLane.ready} and type = ? and priority = ? and tenant = ?
         order by due_at_ms, enqueued_at_ms, id limit ?`,
        type,
        priority,
        tenant,
        limit,
      ).map(toHead),
    );
  }

  function take(head: TaskHead, { worker, nowMs }: ClaimRequest, rule: ClaimRule): StoredTask {
    lastTurn ??= number('select max(turn) from task_turns');
    lastTurn = Math.max(lastTurn + 1, nowMs);
    all(
      `insert into task_turns (type, priority, tenant, turn) values (?, ?, ?, ?)
       on conflict do update set turn = max(excluded.turn, turn + 1)`,
      head.type,
      head.priority,
      head.tenant,
      lastTurn,
    );
    const [row] = all(
      `update tasks set state = 'running', lane = ${taskLane.closed}, worker = ?, fence = fence + 1,
         revision = revision + 1, claimed_at_ms = ?, updated_at_ms = ?, deadline_ms = ?
       where id = ? returning *`,
      worker,
      nowMs,
      nowMs,
      nowMs + rule.deadlineAfterMs,
      head.id,
    ) as [SqlRow];
    const fields = all('select name, value from task_fields where task = ?', row['seq'] ?? 0);
    return toStoredTask(row, fields);
  }

  /** Blocks the jobs whose key is full, so later claims do not scan them again. */
  function block(heads: readonly TaskHead[], { keyLimit }: ClaimRule): number {
    if (keyLimit === undefined) return 0;
    let blocked = 0;
    for (const { id, type, concurrencyKey } of heads) {
      if (concurrencyKey === '' || runningOf(type, concurrencyKey) < keyLimit) continue;
      const { blocked: lane, ready: from } = taskLane;
      blocked += all(
        `update tasks set lane = ${lane} where id = ? and lane = ${from} returning seq`,
        id,
      ).length;
    }
    return blocked;
  }

  function claimType(
    request: ClaimRequest,
    rule: ClaimRule,
    limit: number,
  ): { readonly claimed: readonly StoredTask[]; readonly freeAtMs: number } {
    const { type } = rule;
    const { nowMs } = request;
    const claimed: StoredTask[] = [];
    let freeAtMs = Infinity;
    all(
      `update tasks set lane = ${taskLane.ready}
       where lane = ${taskLane.later} and type = ? and due_at_ms <= ?`,
      type,
      nowMs,
    );
    const top = `select max(priority) as priority from tasks
       where lane = ${taskLane.ready} and type = ?`;
    let priority = one(top, type)?.['priority'] ?? null;
    while (priority !== null && claimed.length < limit) {
      const level = Number(priority);
      const room = limit - claimed.length;
      const due = ready(type, level, room);
      const chosen = selectClaims(due, { ...rule, limit: room }, memory, nowMs);
      freeAtMs = Math.min(freeAtMs, chosen.freeAtMs ?? Infinity);
      for (const [tenant = '', fullAtMs] of chosen.rates) {
        all(
          `insert into task_rates (type, tenant, full_at_ms) values (?, ?, ?)
           on conflict do update set full_at_ms = excluded.full_at_ms`,
          type,
          tenant,
          fullAtMs,
        );
      }
      for (const head of chosen.heads) claimed.push(take(head, request, rule));
      const taken = new Set(chosen.heads.map(({ id }) => id));
      const blocked = block(
        due.filter(({ id }) => !taken.has(id)),
        rule,
      );
      // If jobs were blocked, claim others of this priority; otherwise continue with the next priority.
      if (blocked > 0 && claimed.length < limit) continue;
      priority = one(`${top} and priority < ?`, type, level)?.['priority'] ?? null;
    }
    return { claimed, freeAtMs };
  }

  return {
    claim(request) {
      const { worker, aliveUntilMs } = request;
      all(
        `insert into task_workers (worker, alive_until_ms) values (?, ?)
         on conflict do update set alive_until_ms = excluded.alive_until_ms`,
        worker,
        aliveUntilMs,
      );
      const paused = new Set(
        all(`select type from task_modes where mode = 'paused'`).map(({ type }) => type),
      );
      const rules = request.rules.filter(({ type }) => !paused.has(type));
      const exhausted = new Set<string>();
      let freeAtMs = Infinity;
      const claimed = claimInParts({ rules, limit: request.limit }, (rule, limit) => {
        if (exhausted.has(rule.type)) return [];
        const found = claimType(request, rule, limit);
        freeAtMs = Math.min(freeAtMs, found.freeAtMs);
        if (found.claimed.length < limit) exhausted.add(rule.type);
        return found.claimed;
      });
      return { claimed, freeAtMs: freeAtMs === Infinity ? null : freeAtMs };
    },
    freeKey(type, concurrencyKey) {
      // Unblock two jobs for each released one, so that more jobs run after the limit of the key was raised.
      all(
        `update tasks set lane = ${taskLane.ready} where seq in (select seq from tasks
           where lane = ${taskLane.blocked} and type = ? and concurrency_key = ?
           order by priority desc, due_at_ms limit 2)`,
        type,
        concurrencyKey,
      );
    },
  };
}
