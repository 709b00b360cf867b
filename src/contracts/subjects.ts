// Builders of all subjects, and the names of the consumer groups of the task streams.

import type { Identifier } from './identifier.ts';
import { checkSubjectRoot, checkSubjectToken } from './subject-tokens.ts';

/**
 * The last tokens of each kind of subject; builders, parser and types derive from this table.
 *
 * @example
 * import { subjectActions } from 'millrace/contracts';
 *
 * console.log(subjectActions.tasks.type); // ['queue', 'progress', 'terminal']
 */
export const subjectActions = {
  notify: {
    customer: ['alert', 'info', 'digest'],
    broadcast: ['maintenance', 'announcement'],
  },
  events: {
    system: ['health', 'deploy', 'error'],
    api: ['request', 'error'],
    auth: ['login', 'logout', 'failure'],
    audit: ['change', 'access'],
  },
  tasks: {
    type: ['queue', 'progress', 'terminal'],
    control: ['sweep', 'rebalance', 'shutdown'],
  },
} as const;

export const subjectRootDefault = 'gbe';

export interface SubjectOptions<Root extends string = string> {
  /** One token, or several separated by dots (`prod.gbe`); default `gbe`. */
  readonly root?: Root | undefined;
}

export type Subjects<Root extends string = typeof subjectRootDefault> = ReturnType<
  typeof createSubjects<Root>
>;

/**
 * The subjects below a root. `alert`, `queue` and so on are full subjects to publish to; `all` and the
 * members of `every…` are patterns to subscribe with.
 *
 * @example
 * import { createSubjects } from 'millrace/contracts';
 *
 * const staging = createSubjects({ root: 'staging' });
 * console.log(staging.notify.customer('cust_abc123').alert); // staging.notify.customer.cust_abc123.alert
 * console.log(staging.notify.everyCustomer.alert); // staging.notify.customer.*.alert
 */
export function createSubjects<const Root extends string = typeof subjectRootDefault>(
  options: SubjectOptions<Root> = {},
) {
  const root = (options.root ?? subjectRootDefault) as Root;
  checkSubjectRoot(root);
  const { notify, events, tasks } = subjectActions;

  return {
    root,
    all: `${root}.>` as const,
    notify: {
      all: `${root}.notify.>` as const,
      customer<const Id extends string>(customerId: Id) {
        checkSubjectToken('customer id', customerId);
        return below(`${root}.notify.customer.${customerId}`, notify.customer);
      },
      everyCustomer: below(`${root}.notify.customer.*`, notify.customer),
      broadcast: below(`${root}.notify.broadcast`, notify.broadcast),
      topic<const Name extends string>(name: Name) {
        checkSubjectToken('topic', name);
        return `${root}.notify.topic.${name}` as const;
      },
      everyTopic: `${root}.notify.topic.*` as const,
    },
    events: {
      all: `${root}.events.>` as const,
      system: below(`${root}.events.system`, events.system),
      api: below(`${root}.events.api`, events.api),
      auth: below(`${root}.events.auth`, events.auth),
      audit: below(`${root}.events.audit`, events.audit),
    },
    tasks: {
      all: `${root}.tasks.>` as const,
      type<const Type extends string>(taskType: Identifier<Type>) {
        checkSubjectToken('task type', taskType);
        return below(`${root}.tasks.${taskType as Type}`, tasks.type);
      },
      // Without `all`: `tasks.*.>` would include the control subjects, and NATS cannot exclude them.
      everyType: leaves(`${root}.tasks.*`, tasks.type),
      control: below(`${root}.tasks._control`, tasks.control),
    },
  };
}

/**
 * The subjects below the root `gbe`.
 *
 * @example
 * import { subjects } from 'millrace/contracts';
 *
 * console.log(subjects.tasks.type('email-send').queue); // gbe.tasks.email-send.queue
 * console.log(subjects.events.all); // gbe.events.>
 */
export const subjects = createSubjects();

/**
 * The consumer groups of the task streams. Workers read the queue of a task type and an orchestrator
 * its progress; monitors and the archiver read the terminal streams of all types.
 *
 * @example
 * import { consumerGroups } from 'millrace/contracts';
 *
 * console.log(consumerGroups.workers('email-send')); // email-send-workers
 */
export const consumerGroups = {
  workers<const Type extends string>(taskType: Identifier<Type>): `${Type}-workers` {
    checkSubjectToken('task type', taskType);
    return `${taskType}-workers` as `${Type}-workers`;
  },
  orchestrator<const Type extends string>(taskType: Identifier<Type>): `${Type}-orchestrator` {
    checkSubjectToken('task type', taskType);
    return `${taskType}-orchestrator` as `${Type}-orchestrator`;
  },
  monitors: 'monitors',
  archiver: 'archiver',
} as const;

type Leaves<Prefix extends string, Action extends string> = {
  readonly [A in Action]: `${Prefix}.${A}`;
};

function leaves<const Prefix extends string, Action extends string>(
  prefix: Prefix,
  actions: readonly Action[],
): Leaves<Prefix, Action> {
  const built: Record<string, string> = {};
  for (const action of actions) built[action] = `${prefix}.${action}`;
  return built as Leaves<Prefix, Action>;
}

function below<const Prefix extends string, Action extends string>(
  prefix: Prefix,
  actions: readonly Action[],
): Leaves<Prefix, Action> & { readonly all: `${Prefix}.>` } {
  return Object.assign({ all: `${prefix}.>` as const }, leaves(prefix, actions));
}
