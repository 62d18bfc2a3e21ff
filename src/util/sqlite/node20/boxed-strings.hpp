// better-sqlite3 13 keeps references to strings, which Node-API allows from version 10 on. Node 20 speaks version 9, where
// a reference is to an object. Included before better-sqlite3's sources, this puts each such string into an object.
#include <napi.h>

namespace Napi {

template <>
inline Reference<String> Reference<String>::New(const String& value, uint32_t initial_count) {
  napi_env env = value.Env();
  Object box = Object::New(env);
  box.Set(uint32_t{0}, value);
  napi_ref reference = nullptr;
  napi_status status = napi_create_reference(env, box, initial_count, &reference);
  NAPI_THROW_IF_FAILED(env, status, Reference<String>());
  return Reference<String>(env, reference);
}

template <>
inline String Reference<String>::Value() const {
  if (_ref == nullptr) return String();
  napi_value box = nullptr;
  napi_status status = napi_get_reference_value(_env, _ref, &box);
  NAPI_THROW_IF_FAILED(_env, status, String());
  return Object(_env, box).Get(uint32_t{0}).As<String>();
}

}  // namespace Napi
