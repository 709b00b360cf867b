// Drivers are optional peers: a missing one is reported with the name to install.

import { MillraceError } from './error.ts';

/**
 * Imports an optional package when it is first needed.
 *
 * @example
 * import { loadDriver } from 'millrace/foundation';
 *
 * const { parseSync } = await loadDriver('oxc-parser', () => import('oxc-parser'));
 * console.log(parseSync('a.ts', 'const a = 1').errors.length); // 0
 */
export async function loadDriver<T>(name: string, load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (error) {
    if (!isMissing(error, name)) throw error;
    throw new MillraceError(
      'DRIVER_MISSING',
      `this needs the package '${name}', which is not installed: npm install ${name}`,
      { cause: error, details: { package: name } },
    );
  }
}

/** Only the driver itself: a missing dependency of the driver is another error. */
function isMissing(error: unknown, name: string): boolean {
  return (
    error instanceof Error &&
    'code' in error &&
    error.code === 'ERR_MODULE_NOT_FOUND' &&
    error.message.includes(`'${name}'`)
  );
}
