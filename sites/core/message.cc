#include <sotto/sites/core/message.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/bytes.h>
#include <sotto/base/enum_reader.h>
#include <sotto/base/error.h>

namespace sotto::sites {
namespace {

enum class Kind : std::uint8_t {
  hello = 1,
  refusal = 2,
  model = 3,
  parcel = 4,
  receipt = 5,
  sum_key = 6,
  unmask = 7,
  masks = 8,
};

constexpr std::uint32_t kHasModel = 1;
constexpr std::uint32_t kWantsModel = 2;
constexpr std::uint32_t kHears = 4;
constexpr std::uint32_t kTells = 8;
constexpr std::uint32_t kObserver = 16;
constexpr std::uint32_t kHelloFlags = kHasModel | kWantsModel | kHears | kTells | kObserver;
constexpr std::uint8_t kWantsWhole = 1;

constexpr std::size_t kHelloBytes = 2 + 32 + 8 + 4 + 4 + 8 + 4 + 4 * 8;
constexpr std::size_t kParcelHeaderBytes = 1 + 3 * 8;

ByteBuffer begin(Kind kind) {
  ByteBuffer out;
  out.write(static_cast<std::uint8_t>(kind));
  return out;
}

Status malformed(std::string_view what) { return {Fault::malformed, std::string(what)}; }

/// The condition on every incarnation and round.
bool sound(Incarnation incarnation, Round round) { return incarnation != 0 && round <= kMostCount; }

Result<Message> parse_hello(ByteReader& in) {
  if (const auto protocol = in.read<std::uint8_t>(); !in.failed() && protocol != kProtocol) {
    return malformed(fmt::format("it speaks protocol {}, this is {}", protocol, kProtocol));
  }
  Hello hello;
  std::ranges::copy(in.take(hello.agreement.size()), hello.agreement.begin());
  hello.incarnation = in.read<Incarnation>();
  hello.life = in.read<std::uint32_t>();
  const auto flags = in.read<std::uint32_t>();
  hello.round = in.read<Round>();
  hello.degree = in.read<std::uint32_t>();
  hello.yours = in.read<Incarnation>();
  hello.applied = in.read<Sequence>();
  hello.oldest = in.read<Sequence>();
  hello.next = in.read<Sequence>();
  if (!in.finished()) {
    return malformed("a hello has another length");
  }
  if (!sound(hello.incarnation, hello.round) || hello.life == 0 || (flags & ~kHelloFlags) != 0) {
    return malformed("a hello with an incarnation, life, round or flag that cannot be");
  }
  const bool streams = hello.applied <= kMostCount && hello.oldest >= 1 &&
                       hello.oldest <= hello.next && hello.next <= kMostCount + 1;
  if (!streams || (hello.yours == 0 && (hello.applied != 0 || hello.next != 1))) {
    return malformed("a hello with numbers of parcels that cannot be");
  }
  hello.has_model = (flags & kHasModel) != 0;
  hello.wants_model = (flags & kWantsModel) != 0;
  hello.hears = (flags & kHears) != 0;
  hello.tells = (flags & kTells) != 0;
  hello.observer = (flags & kObserver) != 0;
  if (hello.observer && hello.tells) {
    return malformed("a hello of an observer that sends");
  }
  return Message(hello);
}

Result<Message> parse_refusal(ByteReader& in) {
  const auto reason = read_enum(in, RefusalReason::other_settings, RefusalReason::broke_rule);
  const auto raw = in.take(in.remaining());
  if (!reason || raw.size() > kMostText) {
    return malformed("a refusal with an unknown reason or too long a text");
  }
  const std::string text(reinterpret_cast<const char*>(raw.data()), raw.size());
  if (printable(text) != text) {
    return malformed("a refusal whose text is not printable");
  }
  return Message(Refusal{*reason, text});
}

Result<Message> parse_model(ByteReader& in, std::size_t dimension) {
  Model model;
  model.incarnation = in.read<Incarnation>();
  model.round = in.read<Round>();
  if (in.failed() || in.remaining() / sizeof(float) != dimension ||
      in.remaining() % sizeof(float) != 0) {
    return malformed("a model of another dimension");
  }
  if (!sound(model.incarnation, model.round)) {
    return malformed("a model with an incarnation or round that cannot be");
  }
  model.values.resize(dimension);
  in.read_into(std::span(model.values));
  if (!std::ranges::all_of(model.values, [](float value) { return std::isfinite(value); })) {
    return Status(Fault::non_finite, "a model with values that are not finite");
  }
  return Message(std::move(model));
}

Result<Message> parse_parcel(ByteReader& in) {
  Parcel parcel;
  parcel.incarnation = in.read<Incarnation>();
  parcel.sequence = in.read<Sequence>();
  parcel.round = in.read<Round>();
  parcel.payload = in.take(in.remaining());
  if (in.failed() || !sound(parcel.incarnation, parcel.round) || parcel.round == 0 ||
      parcel.sequence == 0 || parcel.sequence > kMostCount) {
    return malformed("a parcel with a header that cannot be");
  }
  return Message(parcel);
}

Result<Message> parse_receipt(ByteReader& in) {
  Receipt receipt;
  receipt.incarnation = in.read<Incarnation>();
  receipt.applied = in.read<Sequence>();
  receipt.round = in.read<Round>();
  receipt.own_steps = in.read<std::uint32_t>();
  const auto flags = in.read<std::uint8_t>();
  if (!in.finished() || !sound(receipt.incarnation, receipt.round) || flags > kWantsWhole ||
      receipt.applied > kMostCount || receipt.own_steps < 1 || receipt.own_steps > kMostInterval) {
    return malformed("a receipt that cannot be");
  }
  receipt.wants_whole = flags == kWantsWhole;
  return Message(receipt);
}

Result<Message> parse_sum_key(ByteReader& in) {
  SumKey key;
  key.incarnation = in.read<Incarnation>();
  in.read_into(std::span<std::uint8_t>(key.key));
  if (!in.finished() || key.incarnation == 0) {
    return malformed("a key for sums that cannot be");
  }
  return Message(key);
}

Result<Message> parse_unmask(ByteReader& in) {
  Unmask question;
  question.incarnation = in.read<Incarnation>();
  question.round = in.read<Round>();
  const auto count = in.read<std::uint16_t>();
  if (in.failed() || count > kMostSummed) {
    return malformed("a question about a sum of too many sites");
  }
  question.sites.resize(count);
  in.read_into(std::span(question.sites));
  const bool ascending =
      std::ranges::adjacent_find(question.sites, std::greater_equal()) == question.sites.end();
  if (!in.finished() || !sound(question.incarnation, question.round) || !ascending) {
    return malformed("a question about a sum that cannot be");
  }
  return Message(std::move(question));
}

Result<Message> parse_masks(ByteReader& in) {
  Masks answer;
  answer.incarnation = in.read<Incarnation>();
  answer.round = in.read<Round>();
  const auto count = in.read<std::uint16_t>();
  if (in.failed() || count > kMostSummed) {
    return malformed("masks of too many sites");
  }
  for (std::uint16_t k = 0; k < count; ++k) {
    RevealedMask mask;
    mask.site = in.read<std::uint64_t>();
    const auto kind = in.read<std::uint8_t>();
    in.read_into(std::span<std::uint8_t>(mask.value));
    if (kind > 1) {
      return malformed("a mask of an unknown kind");
    }
    mask.is_share = kind == 1;
    answer.revealed.push_back(mask);
  }
  if (!in.finished() || !sound(answer.incarnation, answer.round)) {
    return malformed("masks that cannot be");
  }
  return Message(std::move(answer));
}

}  // namespace

std::vector<std::byte> encode(const Hello& hello) {
  ByteBuffer out = begin(Kind::hello);
  out.write(kProtocol);
  out.append(hello.agreement);
  out.write(hello.incarnation);
  out.write(hello.life);
  out.write((hello.has_model ? kHasModel : 0) | (hello.wants_model ? kWantsModel : 0) |
            (hello.hears ? kHears : 0) | (hello.tells ? kTells : 0) |
            (hello.observer ? kObserver : 0));
  out.write(hello.round);
  out.write(hello.degree);
  out.write(hello.yours);
  out.write(hello.applied);
  out.write(hello.oldest);
  out.write(hello.next);
  return std::move(out).take();
}

std::vector<std::byte> encode(const Refusal& refusal) {
  ByteBuffer out = begin(Kind::refusal);
  out.write(static_cast<std::uint8_t>(refusal.reason));
  std::string text = printable(refusal.text);
  if (text.size() > kMostText) {
    text.resize(kMostText);
    while (printable(text).size() != text.size()) {
      text.pop_back();  // the rest of a character that was cut
    }
  }
  out.append(std::as_bytes(std::span(text)));
  return std::move(out).take();
}

std::vector<std::byte> encode(const Model& model) {
  ByteBuffer out = begin(Kind::model);
  out.write(model.incarnation);
  out.write(model.round);
  out.write_span(std::span<const float>(model.values));
  return std::move(out).take();
}

std::vector<std::byte> encode(const Parcel& parcel) {
  ByteBuffer out = begin(Kind::parcel);
  out.write(parcel.incarnation);
  out.write(parcel.sequence);
  out.write(parcel.round);
  out.append(parcel.payload);
  return std::move(out).take();
}

std::vector<std::byte> encode(const Receipt& receipt) {
  ByteBuffer out = begin(Kind::receipt);
  out.write(receipt.incarnation);
  out.write(receipt.applied);
  out.write(receipt.round);
  out.write(static_cast<std::uint32_t>(receipt.own_steps));
  out.write(receipt.wants_whole ? kWantsWhole : std::uint8_t{0});
  return std::move(out).take();
}

std::vector<std::byte> encode(const SumKey& key) {
  ByteBuffer out = begin(Kind::sum_key);
  out.write(key.incarnation);
  out.write_span(std::span<const std::uint8_t>(key.key));
  return std::move(out).take();
}

std::vector<std::byte> encode(const Unmask& question) {
  ByteBuffer out = begin(Kind::unmask);
  out.write(question.incarnation);
  out.write(question.round);
  out.write(static_cast<std::uint16_t>(question.sites.size()));
  out.write_span(std::span<const std::uint64_t>(question.sites));
  return std::move(out).take();
}

std::vector<std::byte> encode(const Masks& answer) {
  ByteBuffer out = begin(Kind::masks);
  out.write(answer.incarnation);
  out.write(answer.round);
  out.write(static_cast<std::uint16_t>(answer.revealed.size()));
  for (const RevealedMask& mask : answer.revealed) {
    out.write(mask.site);
    out.write(std::uint8_t{mask.is_share});
    out.write_span(std::span<const std::uint8_t>(mask.value));
  }
  return std::move(out).take();
}

std::size_t max_message_bytes(std::size_t dimension, std::size_t payload) {
  constexpr std::size_t kRefusalBytes = 2 + kMostText;
  const std::size_t model = 1 + 2 * 8 + dimension * sizeof(float);
  return std::max({kHelloBytes, kRefusalBytes, model, kParcelHeaderBytes + payload});
}

Result<Message> parse(std::span<const std::byte> bytes, std::size_t dimension) {
  ByteReader in(bytes);
  switch (static_cast<Kind>(in.read<std::uint8_t>())) {
    case Kind::hello:
      return parse_hello(in);
    case Kind::refusal:
      return parse_refusal(in);
    case Kind::model:
      return parse_model(in, dimension);
    case Kind::parcel:
      return parse_parcel(in);
    case Kind::receipt:
      return parse_receipt(in);
    case Kind::sum_key:
      return parse_sum_key(in);
    case Kind::unmask:
      return parse_unmask(in);
    case Kind::masks:
      return parse_masks(in);
  }
  return malformed("a message of an unknown kind");
}

}  // namespace sotto::sites
