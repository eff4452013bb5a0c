#include <sotto/base/unpacker.h>

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <new>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>

namespace sotto {
namespace {

/// No deflate stream expands further: 258 bytes from one bit each for length and distance.
constexpr std::uint64_t kMostExpansion = 1032;
constexpr std::size_t kPiece = std::size_t{1} << 20;

}  // namespace

struct Unpacker::Stream {
  z_stream z{};

  Stream() {
    // 16 asks for gzip's header and trailer.
    if (inflateInit2(&z, MAX_WBITS + 16) != Z_OK) {
      throw std::bad_alloc();
    }
  }
  ~Stream() { inflateEnd(&z); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
};

Unpacker::Unpacker(std::string_view bytes, std::string name)
    : bytes_(bytes), name_(std::move(name)) {
  if (is_gzip(bytes)) {
    stream_ = std::make_unique<Stream>();
    members_ = 1;
  }
}

Unpacker::~Unpacker() = default;

std::uint64_t Unpacker::capacity() const {
  return stream_ ? bytes_.size() * kMostExpansion : bytes_.size();
}

std::uint64_t Unpacker::place_of(std::uint64_t at) const {
  return members_ > 1 && at == member_begin_ ? member_file_ : at;
}

void Unpacker::refuse_byte(std::uint64_t place, std::string_view reason) const {
  throw Error(fmt::format("{}: byte {}: {}", name_, place, reason));
}

std::size_t Unpacker::read(std::span<char> out) {
  std::size_t filled = 0;
  if (stream_) {
    filled = unpack_into(out);
  } else {
    filled = std::min<std::size_t>(out.size(), bytes_.size() - at_);
    std::copy_n(bytes_.data() + at_, filled, out.data());
  }
  at_ += filled;
  return filled;
}

std::uint64_t Unpacker::taken() const {
  return stream_->z.next_in == nullptr
             ? 0
             : static_cast<std::uint64_t>(reinterpret_cast<const char*>(stream_->z.next_in) -
                                          bytes_.data());
}

std::size_t Unpacker::unpack_into(std::span<char> out) {
  z_stream& z = stream_->z;
  std::size_t filled = 0;
  while (filled < out.size() && !ended_) {
    const std::uint64_t from = taken();
    const auto input = std::min<std::uint64_t>(bytes_.size() - from, kPiece);
    if (input == 0) {
      refuse_byte(at_ + filled, "damaged gzip data: the file ends too early");
    }
    const auto room = std::min(out.size() - filled, kPiece);
    // zlib writes nothing there; its interface is older than const.
    z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes_.data() + from));
    z.avail_in = static_cast<unsigned>(input);
    z.next_out = reinterpret_cast<Bytef*>(out.data() + filled);
    z.avail_out = static_cast<unsigned>(room);
    const int code = inflate(&z, Z_NO_FLUSH);
    filled += room - z.avail_out;
    if (code == Z_STREAM_END) {
      ended_ = !next_member();
      member_begin_ = at_ + filled;
    } else if (code != Z_OK) {
      refuse_byte(at_ + filled,
                  fmt::format("damaged gzip data: {}", z.msg == nullptr ? zError(code) : z.msg));
    }
  }
  return filled;
}

bool Unpacker::next_member() {
  const std::uint64_t from = taken();
  if (from == bytes_.size()) {
    return false;
  }
  if (!is_gzip(bytes_.substr(from))) {
    refuse_byte(from, "the file goes on behind the end of its gzip data");
  }
  if (inflateReset(&stream_->z) != Z_OK) {
    throw std::bad_alloc();
  }
  ++members_;
  member_file_ = from;
  return true;
}

Unpacked unpack(std::string bytes, const std::string& name, std::uint64_t max_bytes) {
  if (!is_gzip(bytes)) {
    return {std::move(bytes), 0};
  }
  Unpacker in(bytes, name);
  Unpacked whole;
  for (;;) {
    const std::size_t before = whole.bytes.size();
    if (before > max_bytes) {
      throw Error(fmt::format("{}: it unpacks to more than {} bytes, the limit", name, max_bytes));
    }
    whole.bytes.resize(before + kPiece);
    const std::size_t got = in.read(std::span(whole.bytes).subspan(before));
    whole.bytes.resize(before + got);
    if (got < kPiece) {
      break;
    }
  }
  whole.members = in.members();
  return whole;
}

}  // namespace sotto
