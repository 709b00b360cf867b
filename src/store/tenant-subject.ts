// The data subjects of a tenant: keys are shared by all tenants, so a subject has the name of its tenant.

import type { DomainEventEnvelope } from '../contracts/envelope.ts';
import { subjectHeader, subjectOf } from './erasure.ts';

/**
 * The subject of a caller that is bound to a tenant. A subject that does not name the tenant before its last part
 * (`notify:customer:core:c-1`) becomes `core:<subject>`: otherwise the caller could learn that a person of another
 * tenant was erased, and lose its own data with that person.
 */
export function tenantSubject(subject: string, tenant: string | undefined): string {
  if (tenant === undefined || subject.split(':').slice(0, -1).includes(tenant)) return subject;
  return `${tenant}:${subject}`;
}

export function withTenantSubject(
  event: DomainEventEnvelope,
  tenant: string | undefined,
): DomainEventEnvelope {
  const subject = subjectOf(event);
  if (subject === undefined || tenant === undefined) return event;
  const headers = { ...event.headers, [subjectHeader]: tenantSubject(subject, tenant) };
  return { ...event, headers };
}
