import { sharedPostgres } from '../../src/testing/servers/shared-servers.ts';
import { outboxRunCases } from './run-cases.ts';

outboxRunCases('postgres', async () => (await sharedPostgres()).url);
