// The adapter while its server is killed and restarted.

import { recoveryCases } from './recovery-cases.ts';
import { serveSqlite } from './served-sqlite.ts';

recoveryCases(() => serveSqlite());
