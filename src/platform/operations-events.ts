// Publishes the operation of a deployment on the bus, below `gbe.events`: processes, errors, sign-ins and admin actions.
// The messages have codes, routes and ids; they never have names, addresses, targets or payloads.

import type { Bus } from '../bus/bus.ts';
import type { NewMessage } from '../bus/bus-message.ts';
import { subjects } from '../contracts/subjects.ts';
import type { Clock } from '../foundation/clock.ts';
import { hasCode, MillraceError } from '../foundation/error.ts';
import { Snooze } from '../foundation/handler-outcome.ts';
import { createIds } from '../foundation/ids.ts';
import type { Observer } from '../foundation/observer.ts';
import { takeTokens } from '../foundation/token-bucket.ts';
import type { RecordedEvent } from '../store/recorded-event.ts';
import { subscription } from '../subscriptions/subscription.ts';
import { auditEndedType, auditRequestedType, type AuditRequest } from './audit-log.ts';
import { defineModule, type PlatformModule } from './modules/platform-module.ts';

export interface OperationsEvents {
  /** Passes everything on, and publishes errors and rejected credentials. */
  readonly observer: Observer;
  /** Publishes the audit log. */
  readonly module: PlatformModule;
  /** Publishes that this process is ready; disposing publishes that it stops. */
  start(bus: Bus, about: Readonly<Record<string, unknown>>): Promise<AsyncDisposable>;
}

/** Clients can cause errors: more than this is counted and left out. */
const rate = { count: 100, perMs: 10_000 } as const;

const busRetryMs = 1_000;
const { system, api, auth, audit } = subjects.events;

export function createOperationsEvents(given: Observer, clock: Clock): OperationsEvents {
  const { log } = given;
  let bus: Bus | undefined;
  let fullAtMs = 0;
  let omitted = 0;

  async function publish(
    subject: string,
    payload: Readonly<Record<string, unknown>>,
  ): Promise<void> {
    const taken = takeTokens({ ...rate, fullAtMs, nowMs: clock.now(), wanted: 1 });
    fullAtMs = taken.fullAtMs;
    if (bus === undefined || taken.taken === 0) {
      omitted += 1;
      return;
    }
    const before = omitted;
    omitted = 0;
    try {
      await bus.publish({
        subject,
        payload: before === 0 ? payload : { ...payload, omitted: before },
      });
    } catch (error) {
      log?.warn({ err: error, subject }, 'operations event not published');
    }
  }

  function publishRequest({ method, route, status, requestId }: Parameters<Report>[2]): void {
    const payload = { method, route, status, requestId };
    if (status === 401) void publish(auth.failure, payload);
    else if (Number(status) >= 500) void publish(api.error, payload);
  }

  return {
    observer: {
      ...given,
      record(name, value, attributes) {
        given.record?.(name, value, attributes);
        if (name === 'http_request_duration_seconds') publishRequest(attributes);
      },
      log: {
        debug: (fields, message) => log?.debug(fields, message),
        info: (fields, message) => log?.info(fields, message),
        warn: (fields, message) => log?.warn(fields, message),
        error(fields, message) {
          log?.error(fields, message);
          const { err, requestId } = fields as {
            readonly err?: unknown;
            readonly requestId?: string;
          };
          const code = err instanceof MillraceError ? err.code : undefined;
          void publish(system.error, { message, code, requestId });
        },
      },
    },
    module: defineModule({
      name: 'operations-events',
      uses: ['bus'],
      subscriptions: (context) => [
        subscription({
          name: 'sub:millrace:operations-events:v1',
          from: 'end',
          filter: { system: true, types: [auditRequestedType, auditEndedType] },
          handler: async (event) => publishAudit(await context.bus(), auditMessages(event)),
        }),
      ],
    }),
    async start(opened, about) {
      bus = opened;
      const process = createIds({ clock }).next();
      await publish(system.health, { ...about, process, status: 'started' });
      return {
        async [Symbol.asyncDispose]() {
          await publish(system.health, { ...about, process, status: 'stopping' });
          bus = undefined;
        },
      };
    },
  };
}

type Report = NonNullable<Observer['record']>;

const signIns: Readonly<Record<string, string>> = {
  'console.sign-in': auth.login,
  'console.sign-out': auth.logout,
};

/** The event's id makes a repeated publish a duplicate. */
function auditMessages({ type, eventId, correlationId, payload }: RecordedEvent): NewMessage[] {
  if (type === auditEndedType) {
    const { outcome, error } = payload as { readonly outcome: string; readonly error?: string };
    const ended = { auditId: correlationId, outcome, error };
    return [{ id: eventId, subject: audit.change, payload: ended }];
  }
  const { action, actor, requestId } = payload as AuditRequest;
  const { kind: actorKind, tenant } = actor;
  const requested = { auditId: eventId, outcome: 'requested', action, actorKind, requestId };
  const message = { id: eventId, tenant, payload: requested };
  const signIn = signIns[action];
  return [
    { ...message, subject: audit.change },
    ...(signIn === undefined ? [] : [{ ...message, subject: signIn }]),
  ];
}

async function publishAudit(bus: Bus, messages: readonly NewMessage[]): Promise<void> {
  try {
    await bus.publishMany(messages);
  } catch (error) {
    if (!hasCode(error, 'BUS_UNAVAILABLE')) throw error;
    throw new Snooze(busRetryMs, 'the bus is unavailable', { cause: error });
  }
}
