// The contact addresses of a customer: personal data that can be erased. Addresses are not stored in the inbox, and no other
// event, message or job contains them.

import { CommandRejected, defineAggregate } from 'millrace/aggregates';
import { subjectLimits } from 'millrace/contracts';
import { changeContact, contactChanged } from './customer-events.ts';

export interface CustomerContact {
  readonly email?: string;
  readonly webhookUrl?: string;
  /** The last part of the name of an ntfy-compatible topic, `<tenant>_<topic>`. */
  readonly topic?: string;
}

const noContact: CustomerContact = {};

/**
 * The aggregate `customer-contact`; its id is the customer's.
 *
 * @example
 * import { customerCommands, customerContact } from 'millrace/customers';
 * import { given } from 'millrace/testing';
 *
 * given(customerContact, [])
 *   .when(customerCommands.changeContact({ topic: 'ops' }))
 *   .thenState({ topic: 'ops' });
 */
export const customerContact = defineAggregate({
  bc: 'notify',
  name: 'customer-contact',
  version: 1,
  events: [contactChanged],
  commands: [changeContact],
  initial: noContact,
  dataSubject: customerSubject,
  evolve: { 'customer-contact.changed.v1': (_before, contact): CustomerContact => contact },
  decide: {
    'customer-contact.change': (contact, _before, { tenant }) => {
      const { topic } = contact;
      if (topic !== undefined && customerTopic(tenant, topic) === undefined) {
        const message = `the topic '${tenant}_${topic}' has more than ${subjectLimits.idCharsMax} characters`;
        throw new CommandRejected('topic-too-long', message);
      }
      return contactChanged(contact);
    },
  },
});

/**
 * The data subject of a customer's contact and notifications: `millrace forget <subject>` erases them.
 *
 * @example
 * import { customerSubject } from 'millrace/customers';
 *
 * console.log(customerSubject('core', 'cust_1')); // notify:customer:core:cust_1
 */
export function customerSubject(tenant: string, customerId: string): string {
  return `notify:customer:${tenant}:${customerId}`;
}

/**
 * The topic that notifications of a customer are published to. Topics have no tenant, so each tenant has a namespace:
 * a customer cannot choose a topic of another tenant, or one that only some users may write. Undefined: too long.
 */
export function customerTopic(tenant: string, topic: string): string | undefined {
  // A tenant has no underscore, so the name belongs to one tenant only.
  const name = `${tenant}_${topic}`;
  return name.length > subjectLimits.idCharsMax ? undefined : name;
}
