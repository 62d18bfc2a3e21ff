import { render } from 'preact';
import { App } from './app.tsx';
import { language } from './messages.ts';

// The browser's own copy of the page, after going back, may be that of somebody who has signed out.
addEventListener('pageshow', ({ persisted }) => persisted && location.reload());

document.documentElement.lang = language;
render(<App />, document.body);
