import type { Meter } from '../../util/meter.ts';
import { silentMeter } from '../../util/meter.ts';

/** Facts from the calls beside their results. */
export class Trace {
  /** Answers that say the service wants fewer calls. */
  limited = 0;
  retried = 0;
  /** Whether an access token came of the refresh token. */
  hasRefreshed = false;

  readonly meter: Meter = {
    ...silentMeter,
    called: ({ route, outcome }) => {
      if (route === 'oauth2/token' && outcome === 'ok') this.hasRefreshed = true;
    },
    answered: (status) => {
      if (status === 429) this.limited++;
    },
    retried: () => {
      this.retried++;
    },
  };
}
