/** The words about signing in and out. */
export const ENGLISH_SIGN_IN = {
  signOut: 'Sign out',
  cannotSignOut: 'You are still signed in: {0}',
  signInAgain: 'Sign in again',
  signInReason: 'You are no longer signed in. What you were doing goes on when you have signed in.',
  signInInTab:
    'You are no longer signed in. Sign in in a new tab, and come back: what you were doing goes on then.',
  signInWith: 'Sign in with {0}',
  userName: 'User name',
  password: 'Password',
  signIn: 'Sign in',
  notNow: 'Not now',
  wrongPassword: 'That is not the password. Please try again.',
  waitForSignIn: 'There were too many wrong passwords. Try again in {0} seconds.',
  signInUnavailable: 'The password cannot be checked at the moment. Try again in a few seconds.',
  noSignIn: 'You could not be signed in. Check the connection, and that this browser keeps cookies.',
  signedOut: 'You are no longer signed in.',
};

export const GERMAN_SIGN_IN: Readonly<Record<keyof typeof ENGLISH_SIGN_IN, string>> = {
  signOut: 'Abmelden',
  cannotSignOut: 'Die Abmeldung hat nicht geklappt: {0}',
  signInAgain: 'Noch einmal anmelden',
  signInReason: 'Die Anmeldung ist abgelaufen. Nach dem Anmelden geht es weiter.',
  signInInTab: 'Die Anmeldung ist abgelaufen. Nach dem Anmelden in einem neuen Tab geht es hier weiter.',
  signInWith: 'Mit {0} anmelden',
  userName: 'Benutzername',
  password: 'Passwort',
  signIn: 'Anmelden',
  notNow: 'Jetzt nicht',
  wrongPassword: 'Das ist nicht das Passwort. Bitte noch einmal versuchen.',
  waitForSignIn: 'Das waren zu viele falsche Passwörter. Bitte in {0} Sekunden noch einmal versuchen.',
  signInUnavailable: 'Das Passwort kann gerade nicht geprüft werden. Bitte gleich noch einmal versuchen.',
  noSignIn:
    'Die Anmeldung hat nicht geklappt. Bitte die Verbindung prüfen, und ob der Browser Cookies speichert.',
  signedOut: 'Die Anmeldung ist abgelaufen.',
};
