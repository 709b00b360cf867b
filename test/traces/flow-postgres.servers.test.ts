import { sharedPostgres } from '../../src/testing/servers/shared-servers.ts';
import { flowCases } from './flow-cases.ts';

flowCases('postgres', async () => (await sharedPostgres()).url);
