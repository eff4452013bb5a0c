// Topics of documents that lie at several sites: latent Dirichlet allocation by Gibbs sampling,
// where each site sweeps over its own documents and the sites exchange what their sweeps have
// changed in the counts of words (AD-LDA; Newman et al., JMLR 10, 2009). No document leaves its
// site, but the counts tell which words its documents have.
//
// A token w of document d gets topic k with a probability proportional to
//   (n_dk + α) (n_wk + β) / (n_k + V β),
// the counts without the token itself. A site works on its own copy of n_wk and n_k in a sweep, and
// begins the next with those of all. Random numbers are numbered by document, token and sweep, so
// that they do not depend on how many sites there are.
//
//   topics [SITES] [FILE]    4 sites; FILE: documents with empty lines between them, by default
//                            600 that are drawn from 5 topics
//
// The sites are threads here; for processes take another transport and store.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <sotto/base/philox.h>
#include <sotto/base/start_threads.h>
#include <sotto/comm/stores.h>
#include <sotto/groups/count_exchange.h>
#include <sotto/groups/program.h>
#include <sotto/trainers/program_run.h>

#include "corpus.h"

namespace {

constexpr std::size_t kTopics = 20;
constexpr double kAlpha = 0.1;
constexpr double kBeta = 0.01;
constexpr int kSweeps = 12;
using Counts = std::vector<std::int32_t>;

/// One site: every p-th document.
class Site final : public sotto::Program {
 public:
  Site(const sotto::ProgramNode& node, const Corpus& corpus)
      : corpus_(corpus),
        first_(static_cast<std::size_t>(node.rank())),
        sites_(static_cast<std::size_t>(node.grid().nodes())),
        exchange_(node.everyone(), {.counts = corpus.words * kTopics}) {
    agreed_.resize(corpus.words * kTopics);
    own_.resize(agreed_.size());
    of_topic_.resize(kTopics);
    of_document_.resize(corpus.documents.size() * kTopics);
    topics_.resize(corpus.documents.size());
    stages_ = {{"sweep", [this](const auto& in) { return sweep(in.round); }, &exchange_, 0},
               {"take", [this](const auto&) { return take(); }, nullptr, 0}};
  }
  std::span<const sotto::ProgramStage> stages() const override { return stages_; }
  const Counts& counts() const { return agreed_; }
  const std::vector<std::size_t>& bytes() const { return bytes_; }

  /// Log-likelihood of this site's tokens, the sum, by the counts that all have.
  double log_likelihood() const {
    double sum = 0;
    for (std::size_t d = first_; d < corpus_.documents.size(); d += sites_) {
      const auto length = static_cast<double>(corpus_.documents[d].size());
      for (const std::uint32_t word : corpus_.documents[d]) {
        double chance = 0;
        for (std::size_t k = 0; k < kTopics; ++k) {
          const double in_document = (of_document_[d * kTopics + k] + kAlpha) /
                                     (length + static_cast<double>(kTopics) * kAlpha);
          chance += in_document * word_chance(word, k);
        }
        sum += std::log(chance);
      }
    }
    return sum;
  }

 private:
  double word_chance(std::uint32_t word, std::size_t topic) const {
    return (own_[word * kTopics + topic] + kBeta) /
           (of_topic_[topic] + static_cast<double>(corpus_.words) * kBeta);
  }
  void count(std::size_t document, std::uint32_t word, std::size_t topic, std::int32_t by) {
    own_[word * kTopics + topic] += by;
    of_topic_[topic] += by;
    of_document_[document * kTopics + topic] += by;
  }
  std::size_t draw(std::size_t document, std::uint32_t word, sotto::RandomStream& random) const {
    std::array<double, kTopics> upto{};
    double sum = 0;
    for (std::size_t k = 0; k < kTopics; ++k) {
      sum += (of_document_[document * kTopics + k] + kAlpha) * word_chance(word, k);
      upto[k] = sum;
    }
    const double at = random.uniform() * sum;
    return std::min<std::size_t>(
        static_cast<std::size_t>(std::ranges::upper_bound(upto, at) - upto.begin()), kTopics - 1);
  }

  /// Sweep 0 gives every token a topic at random.
  sotto::Status sweep(sotto::Round round) {
    for (std::size_t d = first_; d < corpus_.documents.size(); d += sites_) {
      const auto& document = corpus_.documents[d];
      topics_[d].resize(document.size());
      sotto::RandomStream random(
          {.seed = kSeed, .rank = static_cast<sotto::Rank>(d), .round = round});
      for (std::size_t token = 0; token < document.size(); ++token) {
        std::uint8_t& topic = topics_[d][token];
        if (round == 0) {
          topic = static_cast<std::uint8_t>(random.below(kTopics));
        } else {
          count(d, document[token], topic, -1);
          topic = static_cast<std::uint8_t>(draw(d, document[token], random));
        }
        count(d, document[token], topic, 1);
      }
    }
    exchange_.begin(agreed_, own_);
    return {};
  }

  /// n_k of all follows from n_wk of all.
  sotto::Status take() {
    std::ranges::fill(of_topic_, 0);
    for (std::size_t at = 0; at < agreed_.size(); ++at) {
      of_topic_[at % kTopics] += agreed_[at];
    }
    bytes_.push_back(exchange_.sent_bytes());
    return {};
  }

  const Corpus& corpus_;
  std::size_t first_;
  std::size_t sites_;
  sotto::CountExchange exchange_;
  std::vector<sotto::ProgramStage> stages_;
  Counts agreed_;       // n_wk of all, as of the last exchange
  Counts own_;          // with this site's changes since
  Counts of_topic_;     // n_k, alike
  Counts of_document_;  // n_dk
  std::vector<std::vector<std::uint8_t>> topics_;
  std::vector<std::size_t> bytes_;
};

/// What a site has come to.
struct Outcome {
  bool ok = false;
  Counts counts;
  std::vector<double> log_likelihoods;  ///< after each sweep
  std::vector<std::size_t> bytes;       ///< sent, in each sweep
};

Outcome run_site(sotto::Rank rank, int sites, const Corpus& corpus,
                 const std::shared_ptr<sotto::Store>& store) {
  std::vector<float> none(1);  // the counts are the model
  sotto::ProgramRun<Site> run(
      {.rank = rank, .nodes = sites, .grid = "site=" + std::to_string(sites), .parameters = none},
      {.store = store},
      [&](const sotto::ProgramNode& at) { return std::make_unique<Site>(at, corpus); });
  Outcome outcome;
  sotto::Status status;
  for (int round = 0; round <= kSweeps && status.ok(); ++round) {
    status = run.step();
    status = status.ok() ? run.finish() : status;
    outcome.log_likelihoods.push_back(run.program().log_likelihood());
  }
  outcome.counts = run.program().counts();
  outcome.bytes = run.program().bytes();
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", status.message().c_str());
  }
  outcome.ok = status.ok();
  return outcome;
}

}  // namespace

int main(int argc, char** argv) {
  const int sites = argc > 1 ? std::atoi(argv[1]) : 4;
  const Corpus corpus = argc > 2 ? read_corpus(argv[2]) : drawn_corpus();
  if (sites < 1 || corpus.documents.empty()) {
    std::fprintf(stderr, "usage: topics [SITES] [FILE]; FILE has documents, SITES is 1 or more\n");
    return 2;
  }
  const std::shared_ptr<sotto::Store> store = sotto::make_memory_store();
  std::vector<Outcome> outcomes(static_cast<std::size_t>(sites));
  sotto::run_side_by_side(outcomes.size(), "sites", [&](std::size_t site) {
    outcomes[site] = run_site(static_cast<sotto::Rank>(site), sites, corpus, store);
  });
  if (!std::ranges::all_of(outcomes, &Outcome::ok)) {
    return 1;
  }
  // What a site sends of dense counts in the same form: to all others, or by chunks there and back.
  const auto others = static_cast<double>(sites - 1);
  const double dense = static_cast<double>(corpus.words * kTopics * sizeof(std::int32_t)) *
                       (sites <= 3 ? others : 2 * others / static_cast<double>(sites));
  std::printf("%zu documents, %zu words, %zu tokens, %zu topics, %d sites\n",
              corpus.documents.size(), corpus.words, corpus.tokens(), kTopics, sites);
  std::printf("sweep   nats a token   bytes a site sends   times fewer than dense counts\n");
  double last = 0;
  for (std::size_t sweep = 0; sweep <= kSweeps; ++sweep) {
    double sum = 0;
    std::size_t bytes = 0;
    for (const Outcome& outcome : outcomes) {
      sum += outcome.log_likelihoods[sweep];
      bytes += outcome.bytes[sweep] / outcomes.size();
    }
    last = sum / static_cast<double>(corpus.tokens());
    std::printf("%5zu %14.3f %20zu %10.1f\n", sweep, last, bytes,
                bytes == 0 ? 0.0 : dense / static_cast<double>(bytes));
  }
  // What must hold of every site's counts: they are those of all tokens, and alike.
  const auto right = [&](const Outcome& outcome) {
    return outcome.counts == outcomes[0].counts &&
           std::accumulate(outcome.counts.begin(), outcome.counts.end(), std::size_t{0}) ==
               corpus.tokens();
  };
  const bool learnt = argc > 2 || last > -4.9;  // at random it is -5.7
  return std::ranges::all_of(outcomes, right) && learnt ? 0 : 1;
}
