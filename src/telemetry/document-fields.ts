// Two fields by which the naming document finds lines, made of those that say the same in our words:
// which part of the program speaks, and the one operation that it speaks of.

/** The first of these that a line has names its part. */
const componentFields = ['source', 'sub', 'handler', 'saga', 'group', 'destination', 'collector'];
/** Of a request, a deed on record, a message. */
const operationFields = ['requestId', 'auditId', 'outboxId'];

/** Pure: `context.component` and `operationId` of a line, where its fields tell them and it has none. */
export function documentFields(fields: Readonly<Record<string, unknown>>): object {
  const component = firstText(fields, componentFields);
  const operationId = firstText(fields, operationFields);
  return {
    ...(component === undefined || 'context' in fields ? {} : { context: { component } }),
    ...(operationId === undefined || 'operationId' in fields ? {} : { operationId }),
  };
}

function firstText(
  fields: Readonly<Record<string, unknown>>,
  names: readonly string[],
): string | undefined {
  return names.map((name) => fields[name]).find((value) => typeof value === 'string');
}
