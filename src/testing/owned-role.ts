// One role of an engine's handle that closes the whole handle, for suites that open and close a single port.

/** The role with another disposal: closing it closes the handle. */
export function ownedRole<Handle extends AsyncDisposable, Role extends keyof Handle>(
  handle: Handle,
  role: Role,
): Handle[Role] & AsyncDisposable {
  return Object.create(handle[role] as object, {
    [Symbol.asyncDispose]: { value: () => handle[Symbol.asyncDispose]() },
  }) as Handle[Role] & AsyncDisposable;
}
