/** The words about app passwords. */
export const ENGLISH_APP_PASSWORDS = {
  appPasswords: 'App passwords',
  appPasswordsReason:
    'Give each program a password of its own. When you no longer use the program or have lost the device, end that password, and all others go on.',
  appPasswordName: 'Name of the program or device',
  makeAppPassword: 'Make app password',
  appPasswordMade:
    'The password for “{0}”. Enter it there now, with your user name {1}: it is shown only once.',
  noAppPasswords: 'You have no app passwords.',
  madeOn: 'made {0}',
  lastUsed: 'last used {0}',
  neverUsed: 'never used',
  endAppPassword: 'End',
  endAppPasswordOf: 'End the app password “{0}”',
  endAppPasswordTitle: 'End “{0}”?',
  endAppPasswordWarning: 'Programs with this password can no longer log in.',
  tooManyAppPasswords: 'You have as many app passwords as one user can have. End one first.',
};

export const GERMAN_APP_PASSWORDS: Readonly<Record<keyof typeof ENGLISH_APP_PASSWORDS, string>> = {
  appPasswords: 'App-Passwörter',
  appPasswordsReason:
    'Jedes Programm kann ein eigenes Passwort bekommen. Wird das Programm nicht mehr benutzt oder ist das Gerät verloren, lässt sich dieses Passwort beenden, und alle anderen gelten weiter.',
  appPasswordName: 'Name des Programms oder Geräts',
  makeAppPassword: 'App-Passwort erstellen',
  appPasswordMade:
    'Das Passwort für „{0}“. Bitte jetzt dort eingeben, mit dem Benutzernamen {1}: es wird nur einmal angezeigt.',
  noAppPasswords: 'Es gibt keine App-Passwörter.',
  madeOn: 'erstellt {0}',
  lastUsed: 'zuletzt benutzt {0}',
  neverUsed: 'nie benutzt',
  endAppPassword: 'Beenden',
  endAppPasswordOf: 'Das App-Passwort „{0}“ beenden',
  endAppPasswordTitle: '„{0}“ beenden?',
  endAppPasswordWarning: 'Programme mit diesem Passwort können sich nicht mehr anmelden.',
  tooManyAppPasswords: 'Mehr App-Passwörter kann ein Benutzer nicht haben. Bitte zuerst eines beenden.',
};
