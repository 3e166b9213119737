from .encodings import PositionScheme as PositionScheme
from .encodings import scheme as scheme
from .encodings import schemes as schemes
from .encodings import sinusoidal as sinusoidal
from .equivariance import EquivarianceReport as EquivarianceReport
from .equivariance import check_equivariance as check_equivariance
from .errors import PosembedError as PosembedError
from .lookup import one_hot_lookup as one_hot_lookup
from .models import Transformer as Transformer
from .models import TransformerConfig as TransformerConfig
from .pretrained import load_encoder as load_encoder
from .probing import ProbeResult as ProbeResult
from .probing import probe_layers as probe_layers
from .probing import probe_table as probe_table
from .similarity import Properties as Properties
from .similarity import properties as properties
from .similarity import properties_of_matrix as properties_of_matrix
from .stored import load_results as load_results
from .stored import load_study as load_study
from .tables import PositionTable as PositionTable
from .tables import load_table as load_table
from .tables import with_position_table as with_position_table
from .training import RunConfig as RunConfig
from .training import RunResult as RunResult
from .training import run_grid as run_grid
from .training import train as train

__version__: str
