/** Of a record whose names came from outside: `constructor` is somebody's id, not what every object has. */
export function own<Value>(
  record: Readonly<Record<string, Value>>,
  name: string,
): Value | undefined {
  return Object.hasOwn(record, name) ? record[name] : undefined;
}
