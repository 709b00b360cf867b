// What somebody who runs the module writes. Without SLACK_SECRET_KEYS everything is there but workspaces: nothing
// can be sent, and every request says why.

import { parseSecretKeys } from './secret-box.ts';
import { slackRequests } from './slack-requests.ts';

export function demo(
  env: Readonly<Record<string, string | undefined>>,
): ReturnType<typeof slackRequests> {
  const { SLACK_SECRET_KEYS: keys = '', SLACK_API_URL: apiUrl } = env;
  return slackRequests({
    ...(keys === '' ? {} : { secretKeys: parseSecretKeys(keys) }),
    ...(apiUrl === undefined || apiUrl === '' ? {} : { apiUrl }),
  });
}

export default demo(process.env);
