import { render } from 'preact';
import { language } from './messages.ts';
import { SendPage } from './send-page.tsx';

// Another link in the same window.
addEventListener('hashchange', () => location.reload());

document.documentElement.lang = language;
render(<SendPage token={location.hash.slice(1)} />, document.body);
