import { sharedPostgres } from '../../src/testing/servers/shared-servers.ts';
import { killCases } from './kill-cases.ts';

killCases('postgres', async () => (await sharedPostgres()).url);
