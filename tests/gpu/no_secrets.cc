// Secret numbers where libsodium is not: there are none. What needs them, privacy, is refused on a
// device anyway.
#include <sotto/base/error.h>
#include <sotto/base/secret_stream.h>

namespace sotto {
namespace {

[[noreturn]] void refuse_secrets() { throw Error("this build makes no secret numbers"); }

}  // namespace

SecretKey SecretKey::fresh() { refuse_secrets(); }
SecretKey SecretKey::for_tests(std::uint64_t /*seed*/, Rank /*rank*/) { refuse_secrets(); }
SecretKey::~SecretKey() = default;
SecretStream::SecretStream(const SecretKey& /*key*/, SecretPurpose /*purpose*/,
                           std::uint64_t /*index*/)
    : key_(SecretKey::fresh()) {
  refuse_secrets();
}
SecretStream::~SecretStream() = default;
std::uint64_t SecretStream::next_u64() { refuse_secrets(); }
double SecretStream::normal() { refuse_secrets(); }

}  // namespace sotto
